"""What operators do about blocked factors of their sharding rules: a form is a
generator of (row, rank, parts of the operands, attributes, whole operands)."""
import torch

from sharded_calls import plain


def factors(rank, side, number, dim):
    return rank.rule[side][number]["dims"][dim]


def own_rows(rank, operand, dim, whole, indices):
    """Indices counted from the shard's first row, and which are of it."""
    tensor = rank.rule["operands"][operand]
    start, count = rank.block(tensor, dim, whole[operand].shape[dim])
    inside = (indices >= start) & (indices < start + count)
    return torch.where(inside, indices - start, 0), inside


def embedding(row, rank, parts, attrs, whole):
    ids, inside = own_rows(rank, 0, 0, whole, parts[1])
    found = row.run([parts[0], ids], attrs)[0]
    return [found * inside.unsqueeze(-1)]
    yield


def embedding_backward(row, rank, parts, attrs, whole):
    result = rank.rule["results"][0]
    start, count = rank.block(result, 0, row.attrs["num_weights"])
    ids = parts[1]
    inside = (ids >= start) & (ids < start + count)
    padding = attrs["padding_idx"]
    attrs = dict(attrs, padding_idx=padding - start
                 if start <= padding < start + count else -1)
    grad = parts[0] * inside.unsqueeze(-1)
    return row.run([grad, torch.where(inside, ids - start, 0)], attrs)
    yield


def nll(row, rank, parts, attrs, whole):
    logp, target = parts
    own, inside = own_rows(rank, 0, 1, whole, target)
    counts = target != attrs["ignore_index"]
    taken = logp.gather(1, own.unsqueeze(1)).squeeze(1)
    loss = -(taken * (inside & counts)).sum()
    mine = counts.sum().to(logp.dtype)
    if attrs["reduction"] == 1:
        loss = loss / (yield ("sum", mine, factors(rank, "operands", 1, 0)))
    return [loss, mine]


def nll_backward(row, rank, parts, attrs, whole):
    grad, logp, target, total = parts
    own, inside = own_rows(rank, 1, 1, whole, target)
    ignore = attrs["ignore_index"]
    target = torch.where(inside & (target != ignore), own, ignore)
    return row.run([grad, logp, target, total], attrs)
    yield


def softmax(row, rank, parts, attrs, whole):
    dim = attrs["dim"]
    along = factors(rank, "operands", 0, dim)
    x = parts[0]
    if row.name.endswith("backward_data"):
        grad, out = parts
        logs = row.name.startswith("_log")
        mine = (grad if logs else grad * out).sum(dim, keepdim=True)
        total = yield ("sum", mine, along)
        return [grad - out.exp() * total if logs else out * (grad - total)]
    top = yield ("max", x.amax(dim, keepdim=True), along)
    total = yield ("sum", (x - top).exp().sum(dim, keepdim=True), along)
    logs = x - top - total.log()
    return [logs if row.name.startswith("_log") else logs.exp()]


def cross_entropy(row, rank, parts, attrs, whole):
    logits, target = parts
    along = factors(rank, "operands", 0, 1)
    own, inside = own_rows(rank, 0, 1, whole, target)
    top = yield ("max", logits.amax(1), along)
    total = yield ("sum", (logits - top[:, None]).exp().sum(1), along)
    sums = top + total.log()
    taken = logits.gather(1, own[:, None]).squeeze(1) * inside
    taken = yield ("sum", taken, along)
    counts = target != attrs["ignore_index"]
    count = yield ("sum", counts.sum().float(),
                   factors(rank, "operands", 1, 0))
    return [((sums - taken) * counts).sum() / count, sums]


def cross_entropy_backward(row, rank, parts, attrs, whole):
    logits, grad, target, sums = parts
    own, inside = own_rows(rank, 0, 1, whole, target)
    counts = target != attrs["ignore_index"]
    count = yield ("sum", counts.sum().float(),
                   factors(rank, "operands", 2, 0))
    hot = torch.zeros_like(logits).scatter_(
        1, own[:, None], inside[:, None].to(logits.dtype))
    return [((logits - sums[:, None]).exp() - hot) * counts[:, None] *
            grad / count]


def positions(row, rank, parts, attrs, whole):
    """Dropout: the whole tensor's mask, of which a rank has its part."""
    blocks = rank.blocks(rank.rule["operands"][0], whole[0].shape)
    mask = row.mask(whole[0].shape, attrs)
    for d, (start, length) in enumerate(blocks):
        mask = mask.narrow(d, start, length)
    return [parts[0] * mask]
    yield


def attention_positions(row, rank, parts, attrs, whole):
    """Weights are dropped by batch, head, query and key of the whole."""
    if any(f["form"] == "heads" for f in rank.rule["factors"]):
        return (yield from context(row, rank, parts, attrs, whole))
    return (yield from weights_dropped(row, rank, parts, attrs, whole, 0))


def weights_dropped(row, rank, parts, attrs, whole, query):
    """`query` is its operand; the key is the next one."""
    mask = row.mask((*whole[query].shape[:3], whole[query + 1].shape[2]), attrs)
    for d, (start, length) in enumerate(
            rank.blocks(rank.rule["operands"][query], whole[query].shape)[:3]):
        mask = mask.narrow(d, start, length)
    return row.run(parts, dict(attrs, mask_of_part=mask))
    yield


def dropped_backward(row, rank, parts, attrs, whole):
    """The same of a backward, whose query is its second operand."""
    return (yield from weights_dropped(row, rank, parts, attrs, whole, 1))


def triangle(row, rank, parts, attrs, whole):
    last = whole[0].dim()
    rows, columns = (rank.block(rank.rule["operands"][0], d,
                                whole[0].shape[d])[0]
                     for d in (last - 2, last - 1))
    return row.run(parts, dict(attrs, diagonal=attrs["diagonal"] +
                               rows - columns))
    yield


def arange(row, rank, parts, attrs, whole):
    count = len(range(attrs["start"], attrs["end"], attrs["step"]))
    first, length = rank.block(rank.rule["results"][0], 0, count)
    start = attrs["start"] + first * attrs["step"]
    return row.run(parts, dict(attrs, start=start,
                               end=start + length * attrs["step"]))
    yield


def context(row, rank, parts, attrs, whole):
    """Attention reads keys, and its gradients queries, of all ranks' tokens;
    partition.*-context has the exchange."""
    def tokens(tensor):
        return 1 if row.name in WINDOW and tensor.dim() == 4 else 2

    if all(f["form"] not in ("context", "heads")
           for f in rank.rule["factors"]):
        return (yield from plain(row, rank, parts, attrs, whole))
    operands = []
    for tensor, factors in zip(whole, rank.rule["operands"]):
        for dim, size in enumerate(tensor.shape):
            if dim != tokens(tensor):
                tensor = tensor.index_select(
                    dim, rank.indices(factors, dim, size))
        operands.append(tensor)
    return [made.index_select(tokens(made), rank.indices(
                factors, tokens(made), made.shape[tokens(made)]))
            for made, factors in zip(row.run(operands, attrs),
                                     rank.rule["results"])]


WINDOW = ("_flash_attention_forward", "_flash_attention_backward")
KERNEL = "_scaled_dot_product_flash_attention"
FORMS = {"embedding": embedding,
         "embedding_dense_backward": embedding_backward,
         "nll_loss_forward": nll, "nll_loss_backward": nll_backward,
         "_softmax": softmax, "_log_softmax": softmax,
         "_softmax_backward_data": softmax,
         "_log_softmax_backward_data": softmax,
         "cross_entropy": cross_entropy,
         "cross_entropy_backward": cross_entropy_backward,
         "cross_entropy_in_place_backward": cross_entropy_backward,
         "dropout": positions, "tril": triangle, "triu": triangle,
         "arange.start_step": arange,
         "scaled_dot_product_attention": attention_positions,
         **{f"dropped_{kernel}_attention{half}": of
            for kernel in ("flash", "efficient")
            for half, of in (("", attention_positions),
                             ("_backward", dropped_backward))},
         **{KERNEL + of: context for of in (
             "", "_backward", "_for_cpu", "_for_cpu_backward")},
         **{name: context for name in WINDOW},
         **{KERNEL.replace("flash", kind) + of: context
            for kind in ("cudnn", "efficient") for of in ("", "_backward")}}


def form_of(name):
    return FORMS.get(name, plain)
