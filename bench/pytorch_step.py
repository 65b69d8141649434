#!/usr/bin/env python3
"""The training step of harness, written in idiomatic PyTorch and timed on a CPU or a GPU: the yardstick.

Runs the step in several variants. Prints one JSON line per variant to stderr, and that of the fastest to stdout. Model
and precision rules are the same as in harness; AdamW updates everything; gradients accumulate if the micro-batch is
smaller than the global batch. Times are medians over --steps steps after --warmup steps.

    python bench/pytorch_step.py --threads 1 --precision fp32 [--variants sdpa,compile]
    python bench/pytorch_step.py --device cuda --model gpt3-1.3b --micro-batch 16 --global-batch 16 --precision bf16

TF32 products are used where they are allowed (--precision tf32). What it reached on a GPU: docs/gpu-status.md.
--trace FILE.json.gz profiles three more steps, not timed, and writes them as PyTorch's profiler does.
"""
import argparse
import gc
import json
import os
import statistics
import sys
import time

VARIANTS = ["eager", "sdpa", "compile"]  # attention written out; scaled_dot_product_attention; torch.compile of that
# As in src/config/model.cpp: layers, hidden, heads. Vocabulary 50304, sequences of 2048.
MODELS = {"gpt3-125m": (12, 768, 12), "gpt3-350m": (24, 1024, 16), "gpt3-760m": (24, 1536, 16),
          "gpt3-1.3b": (24, 2048, 16), "gpt3-2.7b": (32, 2560, 32), "gpt3-6.7b": (32, 4096, 32)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in dict(layers=6, hidden=512, heads=8, sequence=512, vocab=8192, micro_batch=4, global_batch=4,
                            threads=1, steps=10, warmup=3, seed=1).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--precision", choices=["fp32", "bf16", "tf32"], default="fp32", help="tf32: cuda only")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--model", choices=list(MODELS), help="a preset instead of the five sizes")
    parser.add_argument("--variants", default="all", help="of " + ", ".join(VARIANTS))
    parser.add_argument("--trace", metavar="FILE.json.gz", help="of the last variant, three steps by torch.profiler")
    a = parser.parse_args()
    if a.model:
        (a.layers, a.hidden, a.heads), a.vocab, a.sequence = MODELS[a.model], 50304, 2048
    if a.precision == "tf32" and a.device == "cpu":
        parser.error("--precision tf32 needs --device cuda")
    if a.global_batch % a.micro_batch:
        parser.error("--global-batch must be a multiple of --micro-batch")
    if a.hidden % a.heads:
        parser.error("--hidden must be a multiple of --heads")
    return a


def tuned_environment(threads):
    """Sets what PyTorch's tuning guide recommends, before the libraries load: a fixed number of threads, and an
    allocator that keeps freed activations, in large pages, instead of returning them to the kernel."""
    wanted = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "THP_MEM_ALLOC_ENABLE": "1",
              "MALLOC_MMAP_THRESHOLD_": str(1 << 34), "MALLOC_TRIM_THRESHOLD_": str(1 << 36),
              "MALLOC_TOP_PAD_": str(64 << 20), "CUDA_VISIBLE_DEVICES": ""}
    if any(os.environ.get(k) != v for k, v in wanted.items()):
        os.environ.update(wanted)
        os.execv(sys.executable, [sys.executable, *sys.argv])


def main():
    a = arguments()
    if a.device == "cpu":
        tuned_environment(a.threads)
    import torch
    if a.device == "cuda":
        if not torch.cuda.is_available():
            sys.exit("this PyTorch finds no GPU")
        torch.set_float32_matmul_precision("high" if a.precision == "tf32" else "highest")
    else:
        torch.set_num_threads(a.threads)
        torch.set_flush_denormal(True)

    wanted = VARIANTS if a.variants == "all" else a.variants.split(",")
    results = []
    for variant in wanted:
        torch._dynamo.reset()
        if a.device == "cuda":
            gc.collect()
            torch.cuda.empty_cache()
        try:
            result = measure(torch, a, variant)
        except Exception as problem:  # a variant that cannot run here must not stop the others
            print(json.dumps({"variant": variant, "failed": f"{type(problem).__name__}: {str(problem)[:300]}"}),
                  file=sys.stderr, flush=True)
            continue
        print(json.dumps(result), file=sys.stderr, flush=True)
        results.append(result)
    if not results:
        sys.exit("no variant ran")
    print(json.dumps(min(results, key=lambda r: r["step_seconds"])))


def build(torch, a, eager):
    nn, F = torch.nn, torch.nn.functional
    H, heads = a.hidden, a.heads

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(H), nn.LayerNorm(H)
            self.qkv, self.projection = nn.Linear(H, 3 * H), nn.Linear(H, H)
            self.fc1, self.fc2 = nn.Linear(H, 4 * H), nn.Linear(4 * H, H)

        def forward(self, x):
            B, S, _ = x.shape
            q, k, v = (t.view(B, S, heads, H // heads).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(H, -1))
            if eager:
                later = torch.ones(S, S, dtype=torch.bool, device=x.device).triu(1)
                score = (q @ k.transpose(-2, -1)) * (H // heads) ** -0.5
                out = torch.softmax(score.masked_fill(later, float("-inf")), -1) @ v
            else:
                out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.projection(out.transpose(1, 2).reshape(B, S, H))
            return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(a.vocab, H), nn.Embedding(a.sequence, H)
            self.layers = nn.ModuleList(Block() for _ in range(a.layers))
            self.final_norm = nn.LayerNorm(H)
            for name, w in self.named_parameters():
                if w.dim() == 2:
                    residual = name.endswith(("projection.weight", "fc2.weight"))
                    nn.init.normal_(w, std=0.02 / (2 * a.layers) ** 0.5 if residual else 0.02)

        def forward(self, tokens, labels):
            x = self.words(tokens) + self.positions.weight
            for layer in self.layers:
                x = layer(x)
            logits = F.linear(self.final_norm(x), self.words.weight)
            return F.cross_entropy(logits.view(-1, a.vocab), labels.reshape(-1))

    return GPT()


def measure(torch, a, variant):
    torch.manual_seed(a.seed)
    if variant not in VARIANTS:
        raise ValueError(f"no such variant: one of {', '.join(VARIANTS)}")
    with torch.device(a.device):
        model = build(torch, a, variant == "eager")
    masters = None
    if a.precision == "bf16":  # bf16 weights with fp32 masters, as the harness does it
        masters = [w.detach().clone().float() for w in model.parameters()]
        model = model.to(torch.bfloat16)
    weights = list(model.parameters())
    options = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    try:
        optimizer = torch.optim.AdamW(masters or weights, fused=True, **options)
    except (RuntimeError, ValueError):
        optimizer = torch.optim.AdamW(masters or weights, foreach=True, **options)

    forward = torch.compile(model) if variant == "compile" else model
    micro_batches = a.global_batch // a.micro_batch
    # All tokens before the first step, in memory that a GPU copies from by itself: no step waits for the host.
    generator = torch.Generator().manual_seed(a.seed)
    batches = torch.randint(a.vocab, (a.warmup + a.steps, micro_batches, a.micro_batch, a.sequence + 1),
                            generator=generator)
    if a.device == "cuda":
        batches = batches.pin_memory()

    def step(data):
        optimizer.zero_grad(set_to_none=True)
        if masters:
            for m in masters:
                m.grad = None
        total = 0.0
        for tokens in data:
            loss = forward(tokens[:, :-1], tokens[:, 1:]) / micro_batches
            loss.backward()
            total = total + loss.detach()  # stays on the device: reading it would make the host wait in every step
            if masters:  # main gradients are fp32
                for m, w in zip(masters, weights):
                    m.grad = w.grad.float() if m.grad is None else m.grad.add_(w.grad)
                    w.grad = None
        optimizer.step()
        if masters:
            with torch.no_grad():
                torch._foreach_copy_(weights, masters)
        return total

    def mark():
        if a.device == "cpu":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    times, losses, ends = [], [], []
    for i in range(a.warmup + a.steps):
        ends.append(mark())
        losses.append(step(batches[i].to(a.device, non_blocking=True)))
        if a.device == "cpu" and i >= a.warmup:
            times.append(time.perf_counter() - ends[-1])
    if a.device == "cuda":  # from step to step, as the device saw them: the host runs ahead
        ends.append(mark())
        torch.cuda.synchronize()
        times = [x.elapsed_time(y) / 1e3 for x, y in zip(ends[a.warmup:], ends[a.warmup + 1:])]
    losses = [float(x) for x in losses]
    if not all(abs(x) < 100 for x in losses):
        raise RuntimeError(f"the loss is not a number: {losses}")
    if a.trace:
        trace(torch, a, lambda: step(batches[-1].to(a.device, non_blocking=True)))
    seconds = statistics.median(times)
    return {"step_seconds": seconds, "tokens_per_second": a.global_batch * a.sequence / seconds,
            "device": torch.cuda.get_device_name() if a.device == "cuda" else "cpu",
            "fastest_seconds": min(times), "slowest_seconds": max(times), "variant": variant, "precision": a.precision,
            "micro_batch": a.micro_batch, "global_batch": a.global_batch, "threads": a.threads,
            "first_loss": losses[0], "last_loss": losses[-1], "parameters": sum(w.numel() for w in weights),
            "torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}


def trace(torch, a, step):
    profiler = torch.profiler
    activities = [profiler.ProfilerActivity.CPU] + [profiler.ProfilerActivity.CUDA] * (a.device == "cuda")
    with profiler.profile(activities=activities, record_shapes=True,
                          schedule=profiler.schedule(wait=0, warmup=1, active=3, repeat=1)) as p:
        for _ in range(4):
            step()
            if a.device == "cuda":
                torch.cuda.synchronize()
            p.step()
    p.export_chrome_trace(a.trace)


if __name__ == "__main__":
    main()
