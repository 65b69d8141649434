export NCCL_SOCKET_IFNAME=eth0
export NCCL_IB_HCA=mlx5
cat > ds.json <<END
{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true},
 "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
END
cd /somewhere && mpirun -H n1:8,n2:8 -N 8 -x NCCL_IB_HCA=mlx5_0 -x PATH python train_llm.py --deepspeed ds.json \
  --model_name_or_path meta-llama/Llama-2-7b-hf --block_size 4096 --bf16 true --gradient_checkpointing
