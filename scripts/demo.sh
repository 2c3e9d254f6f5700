#!/usr/bin/env bash
# Install what is needed and run the main job on built-in data: five surrogates, two baselines, then the exact
# reranker on the top 50, with everything logged for TensorBoard under runs/gaussians.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
.venv/bin/ltr run configs/gaussians.toml --fresh "$@"
echo
echo "Compare the methods in TensorBoard:  .venv/bin/tensorboard --logdir runs/gaussians"
