#!/usr/bin/env python3
"""Makes level_sweeps.json: small random sweeps and what the level model says of them, by a plain second implementation.

Needs numpy and scipy. It shares no code with src/analysis: levels are direct sums over all pairs of blocks, quantiles
and tails are scipy's. Usage: make_level_sweeps.py > level_sweeps.json
"""
import json

import numpy as np
from scipy import stats

DECAYS = [0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0]
REACH, CLIP, FLOOR = 6.0, 2.5, 1e-7


def fit(y, group, t, session, rounds, by_rounds=False):
    """y: log seconds in order of time; group: 0 the reference; by_rounds: the level is the mean of the round's others."""
    n, groups = len(y), group.max() + 1
    gap = np.median(np.diff(t)[np.diff(session) == 0])
    medians = lambda v: np.array([np.median(v[group == k]) for k in range(groups)])
    of_round = lambda v: np.array([np.median(v[rounds == r]) for r in rounds])

    def level(x, decay):
        out = np.empty(n)
        for i in range(n):
            w = np.where(session == session[i], decay ** (np.abs(t - t[i]) / gap), 0.0)
            if by_rounds:
                w = (rounds == rounds[i]).astype(float)
            w[i] = 0
            out[i] = (w @ x) / w.sum()
        return out

    location = medians(y - of_round(y))
    x = y - (location - location[0])[group]
    base = of_round(x)
    factor = 1.4826 * np.sqrt(n / max(n - groups, 1))
    scale = max(factor * np.median(np.abs(x - base)), FLOOR)
    decay = DECAYS[0]
    for step in range(8):
        clipped = base + np.clip(x - base, -CLIP * scale, CLIP * scale)
        if step < 5 and not by_rounds:
            decay = min(DECAYS, key=lambda d: np.abs(x - level(clipped, d)).sum())
        base = level(clipped, decay)
        z = y - base
        middle = medians(z)
        scale = max(factor * np.median(np.abs(z - middle[group])), FLOOR)
        own = np.array([1.4826 * np.median(np.abs(z[group == k] - middle[k])) for k in range(groups)])
        scales = np.maximum(own, scale)
        location = middle.copy()
        for _ in range(10):
            u = (z - location[group]) / (REACH * scales[group])
            w = np.where(np.abs(u) < 1, (1 - u * u) ** 2, 0)
            location = np.array([(w * z)[group == k].sum() / w[group == k].sum() for k in range(groups)])
        x = y - (location - location[0])[group]
    u = (z - location[group]) / (REACH * scales[group])
    inside = np.abs(u) < 1
    psi = np.where(inside, (z - location[group]) * (1 - u * u) ** 2, 0)
    slope = np.where(inside, (1 - u * u) * (1 - 5 * u * u), 0)
    blocks = np.array([(group == k).sum() for k in range(groups)])
    degrees = blocks - 1.0
    v = np.array([(psi[group == k] ** 2).sum() / max(slope[group == k].mean(), 0.5) ** 2 / max(blocks[k] - 1, 1)
                  for k in range(groups)])
    common = (degrees * v).sum() / degrees.sum()
    d = np.minimum(degrees[1:].max(), degrees.sum() - degrees)
    moved = np.maximum((d * common + degrees * v) / (d + degrees), v)
    a, b, f = moved[1:] / blocks[1:], moved[0] / blocks[0], d + degrees
    with np.errstate(all="ignore"):
        freedom = (a + b) ** 2 / (a ** 2 / f[1:] + b ** 2 / f[0])
    return dict(decay=decay, effect=location[1:] - location[0], error=np.sqrt(a + b), degrees=freedom, psi=psi,
                aside=int((~inside).sum()), common=common)


def half_widths(fitted, alpha):
    some = fitted["error"] > 0
    return np.where(some, stats.t.ppf(1 - alpha / 2, np.where(some, fitted["degrees"], 1)) * fitted["error"], 0)


def carry_over(psi, group, session):
    """p-value of the analysis of variance by the group of the block before."""
    used = np.flatnonzero(np.diff(session) == 0) + 1
    before, e = group[used - 1], psi[used]
    kinds = np.unique(before)
    between = sum((before == k).sum() * (e[before == k].mean() - e.mean()) ** 2 for k in kinds)
    total = ((e - e.mean()) ** 2).sum()
    if len(kinds) < 2 or between <= 0:
        return 1.0
    d1 = len(kinds) - 1
    d2 = max(len(used) - (group.max() + 1) - d1, 1)
    return float(stats.f.sf(between / d1 / ((total - between) / d2), d1, d2))


def serial(psi, case, session, rounds):
    at = {(s, c, r): e for s, c, r, e in zip(session, case, rounds, psi)}
    products = [e * at[s, c, r + 1] for (s, c, r), e in at.items() if (s, c, r + 1) in at]
    if not products or not (psi ** 2).sum() > 0:
        return 0.0, len(products), 1.0
    r = np.mean(products) / np.mean(psi ** 2) + len(set(case)) / len(psi)
    widened = np.sqrt((1 + min(r, 0.9)) / (1 - min(r, 0.9))) if r > 2 / np.sqrt(len(products)) else 1.0
    return float(r), len(products), float(widened)


def judge(sweep, group, alpha):
    arrays = [np.asarray(sweep[k]) for k in ("y", "t", "session", "round", "case")]
    y, t, session, rounds, case = arrays
    fitted = fit(y, group, t, session, rounds)
    p = carry_over(fitted["psi"], group, session)
    if p < 0.05:
        fitted = fit(y, group, t, session, rounds, by_rounds=True)
    r, pairs, widened = serial(fitted["psi"], case, session, rounds)
    half = half_widths(fitted, alpha) * widened
    return dict(decay=fitted["decay"], aside=fitted["aside"], common=fitted["common"], carry_p=p, correlation=r,
                pairs=pairs, widening=widened, effect=list(fitted["effect"]), low=list(fitted["effect"] - half),
                high=list(fitted["effect"] + half))


def sweep(rng, cases, rounds, missing=0.0, sessions=1, ties=False, disturbed=0.0, carry=0.0, own_drift=0.0, flat=False):
    """A baseline (case 0), its copy (1) and `cases` more; a random walk of the level, uneven distances in time."""
    while True:
        case = np.concatenate([rng.permutation(cases + 2) for _ in range(rounds)])
        n = len(case)
        number = np.repeat(np.arange(rounds), cases + 2)
        session = number * sessions // rounds
        t = np.cumsum(rng.uniform(50, 90, n)) + 5000 * session
        truth = np.concatenate([[0, 0], rng.choice([0, 0, 0.02, -0.03, 0.2], cases)])
        level = 0.004 * np.cumsum(rng.standard_normal(n)) + 0.1 * session
        y = -1.0 + truth[case] + (0 if flat else 1) * (level + 0.004 * rng.standard_normal(n))
        y += (rng.random(n) < disturbed) * rng.uniform(0.05, 0.2, n)
        y[1:] += carry * (case[:-1] == cases + 1)
        y += own_drift * np.where(case % 2 == 1, np.sin(number), 0)
        if ties:
            y = np.round(y, 2)
        there = rng.random(n) >= missing
        y, case, t, number, session = (v[there] for v in (y, case, t, number, session))
        whole = len(set(case)) == cases + 2 and min(np.bincount(number, minlength=rounds)) >= 2
        if whole and min(np.bincount(case)) >= 2:
            return dict(y=list(y), case=case.tolist(), t=list(t), round=number.tolist(), session=session.tolist())


def main():
    rng = np.random.default_rng(20240607)
    plain = dict(cases=3, rounds=8)
    kinds = [("plain", plain), ("two cases, five rounds", dict(cases=2, rounds=5)), ("eleven", dict(cases=11, rounds=6)),
             ("missing", dict(cases=3, rounds=10, missing=0.15)), ("sessions", dict(cases=3, rounds=9, sessions=3)),
             ("sessions, missing", dict(cases=4, rounds=8, sessions=2, missing=0.15)),
             ("ties", dict(plain, ties=True)), ("two cases, five rounds, ties, missing",
                                                dict(cases=2, rounds=5, ties=True, missing=0.1)),
             ("disturbed", dict(plain, disturbed=0.15)), ("carry-over", dict(cases=4, rounds=10, carry=0.03)),
             ("carry-over, missing", dict(cases=4, rounds=10, carry=0.03, missing=0.1)),
             ("own drift", dict(cases=3, rounds=12, own_drift=0.01)), ("one case", dict(cases=1, rounds=7)),
             ("no scatter", dict(plain, flat=True))]
    out = []
    for name, how in kinds:
        for number in range(1 if how.get("flat") else 4):
            made = sweep(rng, **how)
            case = np.asarray(made["case"])
            made["name"] = f"{name} {number + 1}"
            made["cases"] = judge(made, np.maximum(case - 1, 0), 0.05 / how["cases"])
            made["control"] = judge(made, case, 0.05)  # the copy is group 1; only its interval is at this alpha
            out.append(made)
    print(json.dumps(out, separators=(",", ":")).replace('},{"y"', '},\n{"y"'))


if __name__ == "__main__":
    main()
