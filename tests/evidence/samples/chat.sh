#!/bin/bash
OUT=$1
STAGE=$2
if [ "$OUT" == "" ]; then OUT=./out; fi
if [ "$STAGE" == "" ]; then STAGE=3; fi
deepspeed --num_nodes 3 --num_gpus 4 main.py --model_name_or_path Qwen/Qwen2.5-7B-Instruct \
   --per_device_train_batch_size 5 --gradient_accumulation_steps 2 --max_seq_len 768 \
   --gradient_checkpointing --zero_stage $STAGE --deepspeed --output_dir $OUT
