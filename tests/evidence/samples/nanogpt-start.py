import time
out_dir = 'out-words'
init_from = 'gpt2-large'   # sizes are those of the checkpoint
run = 'ft-' + str(time.time())
batch_size = 2
gradient_accumulation_steps = 4 * 8
max_iters = 40
