#!/usr/bin/env bash
# Install what is needed and run the main job on built-in data: learn from a table which rows of a second one to visit, say
# how many hits to expect there, and compare with its labels.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh data
.venv/bin/python -m scripts.demo_tables runs/demo
.venv/bin/ltr rank runs/demo/offers.csv --label taken --visits 100 --group traveller --today cheapness \
    --new runs/demo/new_offers.csv -o runs/demo/list "$@"
echo
echo "Compared with the labels of the new rows:"
.venv/bin/ltr outcome runs/demo/list runs/demo/new_offers.csv
echo
echo "The whole page, with its chart:                     runs/demo/list/page.html"
echo "Surrogates, the exact reranker and its proof:       .venv/bin/ltr run configs/gaussians.toml"
echo "and in TensorBoard, losses beside true statistics:  .venv/bin/tensorboard --logdir runs/gaussians"
