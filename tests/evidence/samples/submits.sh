#!/bin/bash
# Asks for the queue, then hands a script to it.
ACCOUNT=""
QUEUE=${QUEUE:-}
if [ -z "$QUEUE" ]; then
  echo "set QUEUE first" >&2
  exit 2
fi
NODES=10
TP=5; PP=2
COMMAND="cd /code; python pretrain_gpt.py --num-layers 30 --hidden-size 2560 --num-attention-heads 20 --swiglu \
  --ffn-hidden-size 6912 --seq-length 4096 --max-position-embeddings 4096 --padded-vocab-size 100480 \
  --untie-embeddings-and-output-weights --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --micro-batch-size 1 --global-batch-size 64 \
  --bf16 --use-distributed-optimizer --recompute-activations"
sbatch <<END
#!/bin/bash
#SBATCH --nodes=$NODES
#SBATCH --ntasks-per-node=8
srun --mpi=pmix bash -c "${COMMAND}" 2>&1 | tee \${SLURM_JOB_ID}.log
END
