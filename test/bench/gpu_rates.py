#!/usr/bin/env python3
"""What a GPU attains: the figures that a target file asks for.

  gpu_rates.py OUT.json     needs torch and a CUDA device, half a minute

Each kernel is timed by events over several copies of its operands, so that no
cache holds them, and the median is kept. Random operands: zeros run faster.
"""
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

BF16 = torch.bfloat16


def used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def seconds(function, *sets, repeats=12):
    """Median seconds of `function` called with each of `sets` in turn."""
    for operands in sets[:2]:
        function(*operands)
    pairs = []
    for i in range(repeats):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        function(*sets[i % len(sets)])
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in pairs) / 1e3


def context():
    """Bytes that a process takes before its first tensor, part by part."""
    torch.cuda.init()
    before = torch.empty(1, device="cuda")
    parts = {"context": used() - torch.cuda.memory_reserved()}
    a = torch.randn(256, 256, device="cuda", dtype=BF16)
    a @ a
    torch.cuda.synchronize()
    parts["cublas"] = used() - torch.cuda.memory_reserved()
    parts["allocated_after_cublas"] = torch.cuda.memory_allocated()
    F.scaled_dot_product_attention(*[torch.randn(
        1, 2, 256, 64, device="cuda", dtype=BF16) for _ in range(3)],
        is_causal=True)
    F.layer_norm(torch.randn(64, 64, device="cuda"), (64,))
    torch.cuda.synchronize()
    parts["kernels"] = used() - torch.cuda.memory_reserved()
    del before
    return parts


def draw(*shape, dtype=BF16, grad=False):
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=grad)


def matmuls():
    """TFLOP/s of the matmuls of Llama 8B and 1B, by tokens."""
    result = {}
    for dtype, tokens in ((BF16, 8192), (BF16, 2048), (BF16, 512),
                          (torch.float16, 8192)):
        for n, k in ((4096, 4096), (14336, 4096), (4096, 14336),
                     (128256, 4096), (2048, 2048), (8192, 2048)):
            sets = [(draw(tokens, k, dtype=dtype), draw(n, k, dtype=dtype))
                    for _ in range(2)]
            s = seconds(lambda a, b: a @ b.t(), *sets)
            result[f"{str(dtype)[6:]} {tokens}x{n}x{k}"] = round(
                2e-12 * tokens * n * k / s, 1)
    for allow in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = allow
        for tokens in (2048, 8192):
            sets = [(draw(tokens, 4096, dtype=torch.float32),
                     draw(4096, 4096, dtype=torch.float32))
                    for _ in range(2)]
            s = seconds(lambda a, b: a @ b.t(), *sets, repeats=6)
            result[f"{'tf32' if allow else 'fp32'} {tokens}x4096x4096"] = \
                round(2e-12 * tokens * 4096 * 4096 / s, 1)
    torch.backends.cuda.matmul.allow_tf32 = False
    # A burst that the power limit sees.
    a, b = draw(8192, 8192), draw(8192, 8192)
    begin = time.time()
    count = 0
    while time.time() - begin < 2:
        for _ in range(20):
            a @ b
        torch.cuda.synchronize()
        count += 20
    result["bf16 8192x8192x8192 for 2 s"] = round(
        2e-12 * 8192**3 * count / (time.time() - begin), 1)
    return result


def attentions():
    """TFLOP/s of causal attention, forward and backward, by kernel."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    result = {}
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION),
                          ("cudnn", SDPBackend.CUDNN_ATTENTION),
                          ("efficient", SDPBackend.EFFICIENT_ATTENTION)):
        for head in (64, 128, 256):
            for length in (512, 1024, 2048, 4096, 8192, 16384):
                if head == 256 and length not in (2048, 8192):
                    continue
                heads, batch = 4096 // head, max(1, 8192 // length)
                q, k, v = (draw(batch, heads, length, head, grad=True)
                           for _ in range(3))
                flops = 2 * batch * heads * length * length * head
                try:
                    with sdpa_kernel([backend]):
                        def forward(q, k, v):
                            return F.scaled_dot_product_attention(
                                q, k, v, is_causal=True)
                        with torch.no_grad():
                            f = seconds(forward, (q, k, v), repeats=8)
                        out = forward(q, k, v)
                        g = torch.randn_like(out)
                        b = seconds(lambda: torch.autograd.grad(
                            out, (q, k, v), g, retain_graph=True), (),
                            repeats=8)
                    result[f"{name} head {head} length {length}"] = [
                        round(flops / f * 1e-12, 1),
                        round(2.5 * flops / b * 1e-12, 1)]
                except RuntimeError as wrong:
                    result[f"{name} head {head} length {length}"] = \
                        str(wrong)[:80]
    return result


def streams():
    """Bytes per second, read and written, of kernels that the memory bounds."""
    n, hidden = 8192, 4096
    result = {}

    def rate(name, function, moved, *sets):
        result[name] = round(moved / seconds(function, *sets) * 1e-12, 3)

    big = [(draw(n, 14336), draw(n, 14336)) for _ in range(3)]
    rate("copy", lambda a, b: a.copy_(b), 2 * n * 14336 * 2, *big)
    rate("add", lambda a, b: a + b, 3 * n * 14336 * 2, *big)
    rate("silu", lambda a, b: F.silu(a), 2 * n * 14336 * 2, *big)
    rate("mul", lambda a, b: a * b, 3 * n * 14336 * 2, *big)
    rate("cast to fp32", lambda a, b: a.float(), 6 * n * 14336, *big)
    rate("cat", lambda a, b: torch.cat([a, b], -1), 4 * n * 14336 * 2, *big)
    rate("transpose copied", lambda a, b: a.t().contiguous(),
         2 * n * 14336 * 2, *big)
    rate("square, mean", lambda a, b: a.float().pow(2).mean(-1),
         2 * n * 14336 + 12 * n * 14336, *big)
    rate("sum", lambda a, b: a.sum(-1), n * 14336 * 2, *big)
    del big
    rows = [(draw(n, hidden), draw(hidden)) for _ in range(8)]
    rate("rms_norm", lambda a, w: F.rms_norm(a, (hidden,), w),
         2 * n * hidden * 2, *rows)
    rate("layer_norm", lambda a, w: F.layer_norm(a, (hidden,), w),
         2 * n * hidden * 2, *rows)
    logits = [(draw(2048, 128256, dtype=torch.float32),) for _ in range(2)]
    rate("log_softmax fp32", lambda a: F.log_softmax(a, -1),
         2 * 2048 * 128256 * 4, *logits)
    rate("softmax fp32", lambda a: F.softmax(a, -1),
         2 * 2048 * 128256 * 4, *logits)
    del logits
    table = draw(128256, hidden)
    ids = torch.randint(0, 128256, (n,), device="cuda")
    rate("embedding", lambda t, i: F.embedding(i, t), 2 * n * hidden * 2,
         (table, ids))
    grad = draw(n, hidden)
    rate("embedding backward", lambda g, i: torch.ops.aten.
         embedding_dense_backward(g, i, 128256, -1, False),
         128256 * hidden * 2 + 2 * n * hidden * 2, (grad, ids))
    del table
    for dtype, size in ((torch.float32, 4), (BF16, 2)):
        params = [draw(4096, 14336, dtype=dtype, grad=True) for _ in range(6)]
        for p in params:
            p.grad = torch.randn_like(p)
        for how in ("fused", "foreach"):
            optimizer = torch.optim.AdamW(params, lr=1e-4, **{how: True})
            s = seconds(optimizer.step, ())
            result[f"adamw {how} {size} B"] = round(
                7 * size * 6 * 4096 * 14336 / s * 1e-12, 3)
        s = seconds(lambda: torch.nn.utils.clip_grad_norm_(params, 1.0), ())
        result[f"clip {size} B"] = round(
            3 * size * 6 * 4096 * 14336 / s * 1e-12, 3)
        del params, optimizer
    pinned = torch.empty(2**28, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(2**28, dtype=torch.uint8, device="cuda")
    rate("host to device", lambda a, b: a.copy_(b, non_blocking=True), 2**28,
         (there, pinned))
    rate("device to host", lambda a, b: a.copy_(b, non_blocking=True), 2**28,
         (pinned, there))
    # How bytes of one kernel limit its rate.
    for size in (2**16, 2**18, 2**20, 2**22, 2**24, 2**26):
        sets = [(draw(size // 2), draw(size // 2)) for _ in range(
            min(64, max(2, 2**28 // size)))]
        s = seconds(lambda a, b: torch.add(a, b), *sets, repeats=40)
        result[f"add of {size} bytes, us"] = round(s * 1e6, 2)
    return result


def launches():
    """Microseconds a launch: of the device, and of the host."""
    a = draw(16)
    result = {}
    for name, function in (
            ("add_", lambda: a.add_(1)),
            ("add with autograd", lambda x=draw(16, grad=True): x + 1),
            ("matmul", lambda x=draw(16, 16): x @ x)):
        for _ in range(100):
            function()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(2000):
            function()
        host = time.perf_counter() - begin
        torch.cuda.synchronize()
        result[name] = {"host_us": round(host / 2000 * 1e6, 2),
                        "both_us": round((time.perf_counter() - begin) /
                                         2000 * 1e6, 2)}
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(1000):
            a.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    graph.replay()
    torch.cuda.synchronize()
    result["graph us a kernel"] = round(
        (time.perf_counter() - begin) / 1000 * 1e6, 2)
    return result


def main():
    result = {"context": context(), "gpu": torch.cuda.get_device_name(),
              "total_memory":
                  torch.cuda.get_device_properties(0).total_memory,
              "torch": torch.__version__, "cudnn":
                  torch.backends.cudnn.version()}
    for part in (launches, streams, matmuls, attentions):
        begin = time.time()
        try:
            result[part.__name__] = part()
        except Exception as wrong:  # one part stops no other
            result[part.__name__] = {"error": repr(wrong)[:300]}
        torch.cuda.empty_cache()
        print(f"{part.__name__}: {time.time() - begin:.1f} s", flush=True)
    result["smi"] = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,"
         "clocks.max.sm,power.draw,power.limit,temperature.gpu",
         "--format=csv,noheader"], capture_output=True, text=True,
        check=False).stdout.strip()
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
