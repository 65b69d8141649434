#!/bin/bash
# A GPT of two layers of scripts: arrays, defaults, a decidable and an undecidable condition.
export NCCL_IB_TIMEOUT=22 NCCL_DEBUG=${NCCL_DEBUG:-WARN}
GPUS=4; NODES=${NODES:-"3"}
WORLD=$((GPUS * NODES))   # 12
SIZE="$1"
KIND=llama
SHAPE=(
  --num-layers 24   # it's a comment
  --hidden-size 2048 --num-attention-heads 16
  --seq-length 4096 --max-position-embeddings 32768
)
if [[ "$KIND" == "llama" && $WORLD -gt 8 ]]; then
  SHAPE+=("--swiglu" "--normalization RMSNorm" --position-embedding-type rope --ffn-hidden-size 5632)
  SHAPE+=(--group-query-attention --num-query-groups 4 --disable-bias-linear --untie-embeddings-and-output-weights)
fi
if [ -f extra.txt ]; then
  SHAPE+=(--log-throughput)
else
  SHAPE+=(--no-log-throughput)
fi
launch() {
  torchrun --nnodes=$NODES --nproc_per_node $GPUS pretrain_gpt.py ${SHAPE[@]} "$@"
}
launch --micro-batch-size 2 --global-batch-size $((WORLD * 8)) --bf16 --overlap-grad-reduce \
  --use-distributed-optimizer --tokenizer-type Llama2Tokenizer --tensor-model-parallel-size 2 \
  --sequence-parallel --save "$SIZE" --some-flag-of-a-fork 7
