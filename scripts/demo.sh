#!/usr/bin/env bash
# Install what is needed and run the main job on built-in data: learn from the labelled rows of a table whom to visit
# among its new rows, say how many hits to expect, and count those that came.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh data
.venv/bin/python -m scripts.demo_tables runs/demo
.venv/bin/ltr rank runs/demo/offers.csv --label taken --visits 100 --group traveller --today cheapness \
    --new runs/demo/new_offers.csv -o runs/demo/list "$@"
echo
echo "And what came:"
.venv/bin/ltr outcome runs/demo/list runs/demo/new_offers.csv
echo
echo "The whole page, with its chart:                     runs/demo/list/page.html"
echo "Surrogates, the exact reranker and its proof:       .venv/bin/ltr run configs/gaussians.toml"
echo "and in TensorBoard, the losses beside the truth:    .venv/bin/tensorboard --logdir runs/gaussians"
