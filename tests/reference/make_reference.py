#!/usr/bin/env python3
"""Makes the reference numbers that the tests hold the training step against: the same GPT, written independently in
PyTorch, from the same weights and the same tokens. See README.md in this folder.

    python3 tests/reference/make_reference.py [--check]

The model is written with plain tensor formulas in double precision, and once more with torch's own modules
(nn.functional.layer_norm, scaled_dot_product_attention, ...); the two must agree before anything is written.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
MODEL = dict(layers=2, hidden=32, heads=4, vocab=64, sequence=16)
GLOBAL_BATCH = 4
SEED = 1
STEPS = 3
ADAMW = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
EPSILON = 1e-5


# ---- numbers ---------------------------------------------------------------------------------------------------------

def philox(key, counter, stream=0):
    """Philox-4x32-10 (Salmon et al., SC11) of an array of counters: four uint64 arrays that hold 32-bit words."""
    low = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    counter = np.asarray(counter, dtype=np.uint64)
    x0, x1 = counter & low, counter >> shift
    x2 = np.full_like(counter, stream & 0xFFFFFFFF)
    x3 = np.full_like(counter, stream >> 32)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * x0
        p1 = np.uint64(0xCD9E8D57) * x2
        x0, x1, x2, x3 = (p1 >> shift) ^ x1 ^ np.uint64(k0), p1 & low, (p0 >> shift) ^ x3 ^ np.uint64(k1), p0 & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return x0, x1, x2, x3


def philox_normal(key, counter, stream=0):
    """Box-Muller on the first two words, in double precision."""
    x = philox(key, counter, stream)
    u = [((w >> np.uint64(8)).astype(np.float64) + 0.5) / 2.0**24 for w in x[:2]]
    return np.sqrt(-2.0 * np.log(u[0])) * np.cos(2.0 * np.pi * u[1])


def parameter_table(model):
    """(name, shape, mean, deviation) in the order of the global parameter index."""
    L, H, V, S = model["layers"], model["hidden"], model["vocab"], model["sequence"]
    small = 0.02 / np.sqrt(2.0 * L)
    rows = [("word_embeddings", (V, H), 0.0, 0.02), ("position_embeddings", (S, H), 0.0, 0.02)]
    for i in range(L):
        rows += [(f"layers.{i}.{name}", shape, mean, deviation) for name, shape, mean, deviation in [
            ("norm1.gamma", (H,), 1.0, 0.02), ("norm1.beta", (H,), 0.0, 0.02),
            ("qkv.weight", (3 * H, H), 0.0, 0.02), ("qkv.bias", (3 * H,), 0.0, 0.02),
            ("projection.weight", (H, H), 0.0, small), ("projection.bias", (H,), 0.0, 0.02),
            ("norm2.gamma", (H,), 1.0, 0.02), ("norm2.beta", (H,), 0.0, 0.02),
            ("fc1.weight", (4 * H, H), 0.0, 0.02), ("fc1.bias", (4 * H,), 0.0, 0.02),
            ("fc2.weight", (H, 4 * H), 0.0, small), ("fc2.bias", (H,), 0.0, 0.02)]]
    rows += [("final_norm.gamma", (H,), 1.0, 0.02), ("final_norm.beta", (H,), 0.0, 0.02)]
    return rows


def initial_weights(model, seed):
    """name -> float32 array."""
    weights, index = {}, 0
    for name, shape, mean, deviation in parameter_table(model):
        count = int(np.prod(shape))
        normal = philox_normal(seed, np.arange(index, index + count, dtype=np.uint64))
        weights[name] = (mean + deviation * normal).astype(np.float32).reshape(shape)
        index += count
    return weights


def batch(model, seed, step):
    """Inputs and labels [global batch, sequence] of one step."""
    S, V = model["sequence"], model["vocab"]
    sample = np.arange(GLOBAL_BATCH, dtype=np.uint64)[:, None] + np.uint64(step * GLOBAL_BATCH)
    counter = sample * np.uint64(S + 1) + np.arange(S + 1, dtype=np.uint64)[None, :]
    tokens = ((philox(seed, counter, 1)[0] * np.uint64(V)) >> np.uint64(32)).astype(np.int64)
    return torch.from_numpy(tokens[:, :-1].copy()), torch.from_numpy(tokens[:, 1:].copy())


# ---- the model, by formulas --------------------------------------------------------------------------------------------

def loss_by_formulas(p, model, tokens, labels):
    B, S = tokens.shape
    H, heads = model["hidden"], model["heads"]
    d = H // heads

    def norm(x, gamma, beta):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + EPSILON) * gamma + beta

    def gelu(x):  # Hendrycks & Gimpel 2016, the tanh form
        return 0.5 * x * (1 + torch.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    x = p["word_embeddings"][tokens] + p["position_embeddings"][None, :S]
    for i in range(model["layers"]):
        def w(name):
            return p[f"layers.{i}.{name}"]
        qkv = norm(x, w("norm1.gamma"), w("norm1.beta")) @ w("qkv.weight").T + w("qkv.bias")
        joined = torch.zeros_like(x)
        for h in range(heads):
            q, k, v = (qkv[..., part * H + h * d:part * H + (h + 1) * d] for part in range(3))
            score = q @ k.transpose(1, 2) / np.sqrt(d)
            later = torch.ones(S, S, dtype=torch.bool).triu(1)
            probability = torch.exp(score.masked_fill(later, -torch.inf))
            joined[..., h * d:(h + 1) * d] = probability / probability.sum(-1, keepdim=True) @ v
        x = x + joined @ w("projection.weight").T + w("projection.bias")
        inner = norm(x, w("norm2.gamma"), w("norm2.beta")) @ w("fc1.weight").T + w("fc1.bias")
        x = x + gelu(inner) @ w("fc2.weight").T + w("fc2.bias")
    logits = norm(x, p["final_norm.gamma"], p["final_norm.beta"]) @ p["word_embeddings"].T
    chosen = logits.gather(-1, labels[..., None])[..., 0]
    return (torch.logsumexp(logits, -1) - chosen).mean()


# ---- the same, with torch's own functions ------------------------------------------------------------------------------

def loss_by_torch(p, model, tokens, labels):
    B, S = tokens.shape
    H, heads = model["hidden"], model["heads"]

    def norm(x, prefix):
        return F.layer_norm(x, (H,), p[f"{prefix}.gamma"], p[f"{prefix}.beta"], EPSILON)

    def linear(x, prefix):
        return F.linear(x, p[f"{prefix}.weight"], p[f"{prefix}.bias"])

    x = F.embedding(tokens, p["word_embeddings"]) + p["position_embeddings"][:S]
    for i in range(model["layers"]):
        qkv = linear(norm(x, f"layers.{i}.norm1"), f"layers.{i}.qkv")
        q, k, v = (t.view(B, S, heads, H // heads).transpose(1, 2) for t in qkv.split(H, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(attended.transpose(1, 2).reshape(B, S, H), f"layers.{i}.projection")
        inner = linear(norm(x, f"layers.{i}.norm2"), f"layers.{i}.fc1")
        x = x + linear(F.gelu(inner, approximate="tanh"), f"layers.{i}.fc2")
    logits = F.linear(norm(x, "final_norm"), p["word_embeddings"])
    return F.cross_entropy(logits.view(B * S, -1), labels.reshape(-1))


def run(loss_function, weights, dtype, steps):
    """Losses of `steps` steps of AdamW and the gradients of the first."""
    p = {name: torch.tensor(w, dtype=dtype, requires_grad=True) for name, w in weights.items()}
    optimizer = torch.optim.AdamW(p.values(), **ADAMW)
    losses, gradients = [], None
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(p, MODEL, *batch(MODEL, SEED, step))
        loss.backward()
        losses.append(loss.item())
        if gradients is None:
            gradients = {name: w.grad.detach().clone().double() for name, w in p.items()}
        optimizer.step()
    return losses, gradients


def relative(found, expected):
    """Largest ||difference|| / ||expected|| over the tensors, and where."""
    errors = {name: ((found[name] - e).norm() / e.norm()).item() for name, e in expected.items()}
    worst = max(errors, key=errors.get)
    return errors[worst], worst


def reference(weights, steps):
    losses, gradients = run(loss_by_formulas, weights, torch.float64, steps)
    again, gradients_again = run(loss_by_torch, weights, torch.float64, steps)
    error, where = relative(gradients_again, gradients)
    if max(abs(a - b) for a, b in zip(losses, again)) > 1e-12 or error > 1e-11:
        sys.exit(f"the two ways to write the model disagree: losses {losses} {again}, gradient {where} by {error}")
    single, gradients_single = run(loss_by_torch, weights, torch.float32, steps)
    error, where = relative(gradients_single, gradients)
    own = {"loss": max(abs(a - b) for a, b in zip(losses, single)), "gradient": error, "gradient_of": where}
    return losses, gradients, own


def bfloat16_deviation(weights, losses, gradients):
    """How far torch's own bf16 (weights and activations in bf16) is from the reference: what precision alone costs."""
    half, gradients_half = run(loss_by_torch, weights, torch.bfloat16, 1)
    errors = {n: ((gradients_half[n] - e).norm() / e.norm()).item() for n, e in gradients.items()}
    return {"loss": abs(half[0] - losses[0]), "gradient": {n: float(f"{e:.2g}") for n, e in errors.items()}}


def documents():
    """File name -> bytes."""
    weights = initial_weights(MODEL, SEED)
    rounded = {name: torch.from_numpy(w).bfloat16().float().numpy() for name, w in weights.items()}

    tensors, offset = [], 0
    for name, shape, mean, deviation in parameter_table(MODEL):
        count = int(np.prod(shape))
        tensors.append({"name": name, "shape": list(shape), "offset": offset, "count": count, "mean": mean,
                        "deviation": deviation})
        offset += count

    files, cases = {}, {}
    for precision, w, steps in (("fp32", weights, STEPS), ("bf16", rounded, 1)):
        losses, gradients, own = reference(w, steps)
        name = f"gpt_tiny_{precision}.f32"
        files[name] = b"".join(gradients[t["name"]].numpy().astype("<f4").tobytes() for t in tensors)
        cases[precision] = {"losses": losses, "gradients": name,
                            "gradient_norms": {t["name"]: gradients[t["name"]].norm().item() for t in tensors},
                            "torch_float32_differs_by": own}
        if precision == "bf16":
            cases[precision]["torch_bfloat16_differs_by"] = bfloat16_deviation(w, losses, gradients)
    cases["bf16"]["note"] = "weights rounded to bf16 (nearest even), then everything in double"

    document = {
        "made_by": "tests/reference/make_reference.py", "torch": torch.__version__, "numpy": np.__version__,
        "model": MODEL, "global_batch_size": GLOBAL_BATCH, "seed": SEED,
        "layer_norm_epsilon": EPSILON, "optimizer": {"name": "AdamW", **ADAMW},
        "parameters": offset, "tensors": tensors, "cases": cases,
    }
    files["gpt_tiny.json"] = (dumps(document) + "\n").encode()
    return files


def dumps(document):
    """One line per tensor and case, so that a difference can be read."""
    lines = []
    for key, value in document.items():
        if key == "tensors":
            items = ",\n".join("    " + json.dumps(item) for item in value)
            lines.append(f"  {json.dumps(key)}: [\n{items}\n  ]")
        elif key == "cases":
            items = ",\n".join(f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            lines.append(f"  {json.dumps(key)}: {{\n{items}\n  }}")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; compare with the files that are here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, content in documents().items():
        if not arguments.check:
            (HERE / name).write_bytes(content)
            print(f"wrote {name}: {len(content)} bytes")
            continue
        here = (HERE / name).read_bytes()
        if name.endswith(".json"):
            a, b = json.loads(here)["cases"], json.loads(content)["cases"]
            difference = max(abs(x - y) for c in a for x, y in zip(a[c]["losses"], b[c]["losses"]))
        else:
            a, b = np.frombuffer(here, "<f4"), np.frombuffer(content, "<f4")
            difference = np.abs(a - b).max() / np.abs(a).max()
        print(f"{name}: largest difference {difference:.3g}")
        if difference > 1e-6:
            sys.exit(f"{name} differs from what this script makes")


if __name__ == "__main__":
    main()
