n_layer = 24
n_head = 16
n_embd = 1024
batch_size = 2**3
gradient_accumulation_steps = 4 * 8
dtype = 'float16'
