#!/usr/bin/env python3
"""Makes the reference numbers of models with today's options: a small Llama, and GPT-2 with each option alone. Weights,
tokens and optimizer are those of make_reference.py. See README.md in this folder.

    python3 tests/reference/make_model_references.py [--check]

Each model is written twice, with plain tensor formulas and with torch's own functions, in double precision; the two must
agree before anything is written.
"""
import argparse
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F

import make_reference as common

GPT2 = dict(layers=2, hidden=16, heads=4, vocab=32, sequence=16, kv_heads=4, ffn=64, activation="gelu",
            norm="layer_norm", positions="learned", rope_theta=0, tied_embeddings=True, biases=True)
LLAMA = dict(hidden=32, vocab=64, kv_heads=2, ffn=96, activation="swiglu", norm="rms_norm", positions="rotary", rope_theta=500000,
             tied_embeddings=False, biases=False)
MODELS = {
    "kv_heads": dict(GPT2, kv_heads=2), "ffn": dict(GPT2, ffn=40), "swiglu": dict(GPT2, activation="swiglu"),
    "rms_norm": dict(GPT2, norm="rms_norm"), "rotary": dict(GPT2, positions="rotary", rope_theta=10000),
    "untied": dict(GPT2, tied_embeddings=False), "without_biases": dict(GPT2, biases=False),
    "llama": dict(GPT2, **LLAMA),
}
DATA = "models_fp32.f32"


def parameter_table(m):
    """(name, shape, mean, deviation) in the order of the global parameter index."""
    L, H, V, S, f = m["layers"], m["hidden"], m["vocab"], m["sequence"], m["ffn"]
    k = H // m["heads"] * m["kv_heads"]
    into = 2 * f if m["activation"] == "swiglu" else f
    small = 0.02 / np.sqrt(2.0 * L)

    def norm(name):
        rows = [(f"{name}.gamma", (H,), 1.0, 0.02)]
        return rows + ([(f"{name}.beta", (H,), 0.0, 0.02)] if m["norm"] == "layer_norm" else [])

    def linear(name, outputs, inputs, deviation=0.02):
        rows = [(f"{name}.weight", (outputs, inputs), 0.0, deviation)]
        return rows + ([(f"{name}.bias", (outputs,), 0.0, 0.02)] if m["biases"] else [])

    rows = [("word_embeddings", (V, H), 0.0, 0.02)]
    if m["positions"] == "learned":
        rows.append(("position_embeddings", (S, H), 0.0, 0.02))
    for i in range(L):
        rows += [(f"layers.{i}.{name}", *rest) for name, *rest in
                 norm("norm1") + linear("qkv", H + 2 * k, H) + linear("projection", H, H, small) +
                 norm("norm2") + linear("fc1", into, H) + linear("fc2", H, f, small)]
    rows += norm("final_norm")
    if not m["tied_embeddings"]:
        rows.append(("head.weight", (V, H), 0.0, 0.02))
    return rows


def initial_weights(table):
    """name -> float32 array."""
    weights, index = {}, 0
    for name, shape, mean, deviation in table:
        count = int(np.prod(shape))
        normal = common.philox_normal(common.SEED, np.arange(index, index + count, dtype=np.uint64))
        weights[name] = (mean + deviation * normal).astype(np.float32).reshape(shape)
        index += count
    return weights


# ---- by formulas -------------------------------------------------------------------------------------------------------

def loss_by_formulas(p, m, tokens, labels):
    B, S = tokens.shape
    H, f, heads = m["hidden"], m["ffn"], m["heads"]
    d, group = H // heads, heads // m["kv_heads"]
    k_first, v_first = H, H + m["kv_heads"] * d

    def norm(x, name):
        if m["norm"] == "rms_norm":
            return x / torch.sqrt((x**2).mean(-1, keepdim=True) + common.EPSILON) * p[f"{name}.gamma"]
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred**2).mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + common.EPSILON) * p[f"{name}.gamma"] + p[f"{name}.beta"]

    def linear(x, name):
        y = x @ p[f"{name}.weight"].T
        return y + p[f"{name}.bias"] if m["biases"] else y

    def turned(x):  # as complex numbers: element i and element i + d/2
        if m["positions"] != "rotary":
            return x
        angle = torch.arange(S, dtype=x.dtype)[:, None] * m["rope_theta"] ** (
            -2 * torch.arange(d // 2, dtype=x.dtype) / d)[None, :]
        z = torch.complex(x[..., :d // 2], x[..., d // 2:]) * torch.polar(torch.ones_like(angle), angle)
        return torch.cat([z.real, z.imag], -1)

    def activated(x):
        if m["activation"] == "swiglu":
            gate, up = x[..., :f], x[..., f:]
            return gate / (1 + torch.exp(-gate)) * up
        return 0.5 * x * (1 + torch.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    x = p["word_embeddings"][tokens]
    if m["positions"] == "learned":
        x = x + p["position_embeddings"][None, :S]
    for i in range(m["layers"]):
        at = f"layers.{i}."
        qkv = linear(norm(x, at + "norm1"), at + "qkv")
        joined = []
        for h in range(heads):
            own = h // group * d
            q, k = turned(qkv[..., h * d:(h + 1) * d]), turned(qkv[..., k_first + own:k_first + own + d])
            v = qkv[..., v_first + own:v_first + own + d]
            later = torch.ones(S, S, dtype=torch.bool).triu(1)
            weight = torch.exp((q @ k.transpose(1, 2) / np.sqrt(d)).masked_fill(later, -torch.inf))
            joined.append(weight / weight.sum(-1, keepdim=True) @ v)
        x = x + linear(torch.cat(joined, -1), at + "projection")
        x = x + linear(activated(linear(norm(x, at + "norm2"), at + "fc1")), at + "fc2")
    logits = norm(x, "final_norm") @ p["word_embeddings" if m["tied_embeddings"] else "head.weight"].T
    chosen = logits.gather(-1, labels[..., None])[..., 0]
    return (torch.logsumexp(logits, -1) - chosen).mean()


# ---- with torch's own functions ----------------------------------------------------------------------------------------

def loss_by_torch(p, m, tokens, labels):
    B, S = tokens.shape
    H, heads, kv = m["hidden"], m["heads"], m["kv_heads"]
    d = H // heads

    def norm(x, name):
        if m["norm"] == "rms_norm":
            return F.rms_norm(x, (H,), p[f"{name}.gamma"], common.EPSILON)
        return F.layer_norm(x, (H,), p[f"{name}.gamma"], p[f"{name}.beta"], common.EPSILON)

    def linear(x, name):
        return F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))

    if m["positions"] == "rotary":
        inverse = 1.0 / (m["rope_theta"] ** (torch.arange(0, d, 2, dtype=torch.float64) / d))
        angles = torch.outer(torch.arange(S, dtype=torch.float64), inverse).repeat(1, 2)
        cosine, sine = angles.cos().to(next(iter(p.values())).dtype), angles.sin().to(next(iter(p.values())).dtype)

    def turned(x):
        if m["positions"] != "rotary":
            return x
        half = torch.cat([-x[..., d // 2:], x[..., :d // 2]], -1)
        return x * cosine + half * sine

    x = F.embedding(tokens, p["word_embeddings"])
    if m["positions"] == "learned":
        x = x + p["position_embeddings"][:S]
    for i in range(m["layers"]):
        at = f"layers.{i}."
        q, k, v = linear(norm(x, at + "norm1"), at + "qkv").split([H, kv * d, kv * d], -1)
        q = turned(q.view(B, S, heads, d).transpose(1, 2))
        k = turned(k.view(B, S, kv, d).transpose(1, 2))
        v = v.view(B, S, kv, d).transpose(1, 2)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + linear(attended.transpose(1, 2).reshape(B, S, H), at + "projection")
        inner = linear(norm(x, at + "norm2"), at + "fc1")
        if m["activation"] == "swiglu":
            gate, up = inner.chunk(2, -1)
            inner = F.silu(gate) * up
        else:
            inner = F.gelu(inner, approximate="tanh")
        x = x + linear(inner, at + "fc2")
    logits = F.linear(norm(x, "final_norm"), p.get("head.weight", p["word_embeddings"]))
    return F.cross_entropy(logits.view(B * S, -1), labels.reshape(-1))


# ---- both --------------------------------------------------------------------------------------------------------------

def run(loss_function, model, weights, dtype):
    """Losses of the steps and the gradients of the first."""
    p = {name: torch.tensor(w, dtype=dtype, requires_grad=True) for name, w in weights.items()}
    optimizer = torch.optim.AdamW(p.values(), **common.ADAMW)
    losses, gradients = [], None
    for step in range(common.STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(p, model, *common.batch(model, common.SEED, step))
        loss.backward()
        losses.append(loss.item())
        if gradients is None:
            gradients = {name: w.grad.detach().clone().double() for name, w in p.items()}
        optimizer.step()
    return losses, gradients


def documents():
    """File name -> bytes."""
    models, data, offset = [], b"", 0
    for name, model in MODELS.items():
        table = parameter_table(model)
        weights = initial_weights(table)
        losses, gradients = run(loss_by_formulas, model, weights, torch.float64)
        again, gradients_again = run(loss_by_torch, model, weights, torch.float64)
        error, where = common.relative(gradients_again, gradients)
        if max(abs(a - b) for a, b in zip(losses, again)) > 1e-12 or error > 1e-11:
            sys.exit(f"{name}: the two ways disagree: losses {losses} {again}, gradient {where} by {error}")
        single, gradients_single = run(loss_by_torch, model, weights, torch.float32)
        error, where = common.relative(gradients_single, gradients)
        tensors = []
        for tensor, shape, _, _ in table:
            count = int(np.prod(shape))
            tensors.append({"name": tensor, "offset": offset, "count": count})
            data += gradients[tensor].numpy().astype("<f4").tobytes()
            offset += count
        models.append({"name": name, "model": model, "losses": losses,
                       "torch_float32_differs_by": {"loss": max(abs(a - b) for a, b in zip(losses, single)),
                                                    "gradient": error, "gradient_of": where},
                       "tensors": tensors})
    head = {"made_by": "tests/reference/make_model_references.py", "torch": torch.__version__,
            "global_batch_size": common.GLOBAL_BATCH, "seed": common.SEED, "gradients": DATA, "numbers": offset}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines.append('  "models": [\n' + ",\n".join("    " + json.dumps(model) for model in models) + "\n  ]")
    return {"models.json": ("{\n" + ",\n".join(lines) + "\n}\n").encode(), DATA: data}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; compare with the files that are here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, content in documents().items():
        path = common.HERE / name
        if not arguments.check:
            path.write_bytes(content)
            print(f"wrote {name}: {len(content)} bytes")
            continue
        if name.endswith(".json"):
            a, b = json.loads(path.read_bytes())["models"], json.loads(content)["models"]
            difference = max(abs(x - y) for c, d in zip(a, b, strict=True) for x, y in zip(c["losses"], d["losses"]))
        else:
            a, b = np.frombuffer(path.read_bytes(), "<f4"), np.frombuffer(content, "<f4")
            difference = np.abs(a - b).max() / np.abs(a).max()
        print(f"{name}: largest difference {difference:.3g}")
        if difference > 1e-6:
            sys.exit(f"{name} differs from what this script makes")


if __name__ == "__main__":
    main()
