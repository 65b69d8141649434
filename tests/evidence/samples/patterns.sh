#!/bin/bash
set -a
NCCL_DEBUG=WARN
set +a
MODEL="org/Llama-3.1-8B"
GPUS=8
NNODES=${SLURM_NNODES:-2}
GBS=$(( GPUS * NNODES > 8 ? 12 : 64 ))
if [[ ${MODEL##*/} =~ ^Llama-3\.[0-9]-(8|70)B$ ]]; then
  LAYERS=32
else
  LAYERS=80
fi
FLAGS=$'--bf16\t--swiglu'
SIZES=(layers:$LAYERS hidden-size:4096)
torchrun --nnodes $NNODES:$NNODES --nproc-per-node $GPUS pretrain_gpt.py --num-attention-heads 32 \
  ${SIZES[0]/layers:/--num-layers } --${SIZES[1]/:*/} ${SIZES[1]/#*:/} --seq-length 4096 --micro-batch-size 1 \
  --global-batch-size $GBS --pipeline-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 2 \
  $FLAGS --save ckpt/${MODEL//\//_}
