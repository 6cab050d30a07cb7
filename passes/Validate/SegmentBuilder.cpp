//===- SegmentBuilder.cpp - Joint graphs from shapes ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/SegmentBuilder.h"

#include <algorithm>

namespace accel::validate {

using plan::Arg;
using plan::DType;
using plan::Instruction;

SegmentBuilder::SegmentBuilder(std::string name, int64_t rounding) {
  graph.function.name = std::move(name);
  graph.rounding = rounding;
}

Tensor SegmentBuilder::slot(const Shape &shape, DType dtype) {
  const Tensor t = static_cast<Tensor>(graph.function.slots.size());
  graph.function.slots.push_back({dtype, shape, t});
  differentiable.push_back(false);
  producers.push_back(-1);
  return t;
}

Tensor SegmentBuilder::alias(Tensor base, const Shape &shape) {
  const Tensor t = slot(shape, dtype(base));
  graph.function.slots[t].base = graph.function.slots[base].base;
  return t;
}

Tensor SegmentBuilder::input(const Shape &shape, DType dtype, bool gradient) {
  const Tensor t = slot(shape, dtype);
  differentiable[t] = gradient;
  inputs.push_back(t);
  return t;
}

Tensor SegmentBuilder::param(const std::string &name, const Shape &shape,
                             DType dtype) {
  const Tensor t = slot(shape, dtype);
  differentiable[t] = true;
  params.push_back(t);
  graph.function.params.push_back(t);
  graph.function.paramNames.push_back(name);
  return t;
}

double SegmentBuilder::numel(Tensor t) const {
  double n = 1;
  for (int64_t size : shape(t))
    n *= static_cast<double>(size);
  return n;
}

double SegmentBuilder::bytes(Tensor t) const {
  return numel(t) * static_cast<double>(plan::itemSize(dtype(t)));
}

double SegmentBuilder::moved(const std::vector<Tensor> &args,
                             const std::vector<Tensor> &results) const {
  double sum = 0;
  for (Tensor t : args)
    sum += bytes(t);
  for (Tensor t : results)
    sum += bytes(t);
  return sum;
}

int SegmentBuilder::emit(const std::string &op, const std::vector<Tensor> &args,
                         const std::vector<Tensor> &results, double flops,
                         double movedBytes, bool isView) {
  Instruction instruction;
  instruction.op = op;
  for (Tensor t : args) {
    Arg arg;
    arg.kind = Arg::Kind::Tensor;
    arg.slot = t;
    instruction.args.push_back(arg);
  }
  instruction.results = results;
  if (!isView) {
    instruction.flops = flops;
    instruction.movedBytes =
        movedBytes >= 0 ? movedBytes : moved(args, results);
  }
  const int index = static_cast<int>(graph.function.instructions.size());
  for (Tensor t : results)
    producers[t] = index;
  graph.function.instructions.push_back(std::move(instruction));
  graph.forward.push_back(forward);
  graph.view.push_back(isView);
  graph.node.push_back(forward ? -1 - index : currentNode);
  graph.pointwiseKeeps.push_back(forward && keeping);
  return index;
}

void SegmentBuilder::node(const std::vector<Tensor> &outputs,
                          std::function<void()> fn) {
  bool any = false;
  const Instruction &last = graph.function.instructions.back();
  for (const Arg &arg : last.args)
    any |= differentiable[arg.slot];
  if (!any)
    return;
  for (Tensor t : outputs)
    differentiable[t] = true;
  nodes.push_back({outputs, std::move(fn)});
}

bool SegmentBuilder::needsGradient(Tensor t) const { return differentiable[t]; }

/// Inputs, parameters and what was kept are there; the rest is made again from
/// them, once.
Tensor SegmentBuilder::use(Tensor t) {
  if (!lazy)
    return t;
  if (auto made = again.find(t); made != again.end())
    return made->second;
  const int index = producers[t];
  if (index < 0 || !graph.forward[index] ||
      (graph.pointwiseKeeps[index] && !graph.view[index]))
    return t;
  // A copy: `emit` grows the list.
  const Instruction instruction = graph.function.instructions[index];
  std::vector<Tensor> args;
  bool changed = !graph.view[index];
  for (const Arg &arg : instruction.args) {
    args.push_back(use(arg.slot));
    changed |= args.back() != arg.slot;
  }
  if (!changed)
    return t; // a view of what is there
  std::vector<Tensor> results;
  for (int old : instruction.results) {
    const Tensor made = graph.view[index] ? alias(args[0], shape(old))
                                          : slot(shape(old), dtype(old));
    results.push_back(made);
    again[old] = made;
  }
  emit(instruction.op, args, results, instruction.flops, instruction.movedBytes,
       graph.view[index]);
  return again[t];
}

Tensor SegmentBuilder::gradient(Tensor t) {
  auto found = gradients.find(t);
  return found == gradients.end() ? -1 : found->second;
}

void SegmentBuilder::addGradient(Tensor t, Tensor g) {
  if (!differentiable[t])
    return;
  Tensor &sum = gradients.try_emplace(t, -1).first->second;
  if (sum < 0) {
    sum = g;
    return;
  }
  const Tensor total = slot(shape(t), dtype(t));
  emit("aten::add.Tensor", {sum, g}, {total}, numel(t));
  gradients[t] = total;
}

Tensor SegmentBuilder::view(Tensor t, const Shape &size) {
  const Tensor result = alias(t, size);
  emit("aten::view", {t}, {result}, 0, 0, true);
  node({result}, [this, t, result] {
    const Tensor g = alias(gradient(result), shape(t));
    emit("aten::view", {gradient(result)}, {g}, 0, 0, true);
    addGradient(t, g);
  });
  return result;
}

Tensor SegmentBuilder::linear(Tensor x, Tensor w, Tensor bias) {
  const int64_t k = shape(w)[1], n = shape(w)[0];
  const int64_t rows = static_cast<int64_t>(numel(x)) / k;
  if (shape(x).size() != 2)
    x = view(x, {rows, k});
  const Tensor transposed = alias(w, {k, n});
  emit("aten::t", {w}, {transposed}, 0, 0, true);
  const Tensor result = slot({rows, n}, dtype(x));
  const double flops = 2.0 * static_cast<double>(rows) *
                       static_cast<double>(k) * static_cast<double>(n);
  if (bias >= 0)
    emit("aten::addmm", {bias, x, transposed}, {result}, flops);
  else
    emit("aten::mm", {x, transposed}, {result}, flops);
  node({result}, [=, this] {
    const Tensor g = gradient(result);
    if (needsGradient(x)) {
      const Tensor dx = slot(shape(x), dtype(x));
      emit("aten::mm", {g, w}, {dx}, flops);
      addGradient(x, dx);
    }
    const Tensor kept = use(x);
    const Tensor gt = alias(g, {n, rows});
    emit("aten::t", {g}, {gt}, 0, 0, true);
    const Tensor dw = slot({n, k}, dtype(w));
    emit("aten::mm", {gt, kept}, {dw}, flops);
    addGradient(w, dw);
    if (bias >= 0) {
      const Tensor db = slot({n}, dtype(bias));
      emit("aten::sum.dim_IntList", {g}, {db}, numel(g));
      addGradient(bias, db);
    }
  });
  return result;
}

Tensor SegmentBuilder::add(Tensor a, Tensor b) {
  const Tensor result = slot(shape(a), dtype(a));
  emit("aten::add.Tensor", {a, b}, {result}, numel(a));
  node({result}, [=, this] {
    const Tensor g = gradient(result);
    addGradient(a, g);
    if (numel(b) < numel(a)) { // broadcast
      if (!needsGradient(b))
        return;
      const Tensor sum = slot(shape(b), dtype(b));
      emit("aten::sum.dim_IntList", {g}, {sum}, numel(g));
      addGradient(b, sum);
    } else {
      addGradient(b, g);
    }
  });
  return result;
}

Tensor SegmentBuilder::mul(Tensor a, Tensor b) {
  const Tensor result = slot(shape(a), dtype(a));
  emit("aten::mul.Tensor", {a, b}, {result}, numel(a));
  node({result}, [=, this] {
    const Tensor g = gradient(result);
    auto product = [&](Tensor of, Tensor other) {
      if (!needsGradient(of))
        return;
      Tensor d = slot(shape(result), dtype(of));
      emit("aten::mul.Tensor", {g, use(other)}, {d}, numel(result));
      if (numel(of) < numel(result)) {
        const Tensor sum = slot(shape(of), dtype(of));
        emit("aten::sum.dim_IntList", {d}, {sum}, numel(result));
        d = sum;
      }
      addGradient(of, d);
    };
    product(a, b);
    product(b, a);
  });
  return result;
}

Tensor SegmentBuilder::unary(const std::string &op, Tensor x, Saves saves,
                             std::optional<DType> type) {
  const Tensor result = slot(shape(x), type.value_or(dtype(x)));
  emit("aten::" + op, {x}, {result}, numel(x));
  node({result}, [=, this] {
    const Tensor g = gradient(result);
    const Tensor dx = slot(shape(x), dtype(x));
    std::vector<Tensor> args = {g};
    if (saves == Saves::Input)
      args.push_back(use(x));
    if (saves == Saves::Output)
      args.push_back(use(result));
    emit("aten::" + op + "_backward", args, {dx}, numel(x));
    addGradient(x, dx);
  });
  return result;
}

Tensor SegmentBuilder::cast(Tensor x, DType type) {
  return dtype(x) == type ? x : unary("_to_copy", x, Saves::Nothing, type);
}

Tensor SegmentBuilder::swiglu(Tensor gate, Tensor up) {
  const Tensor result = slot(shape(gate), dtype(gate));
  emit("fused::swiglu", {gate, up}, {result}, 5 * numel(gate));
  node({result}, [=, this] {
    const Tensor g = gradient(result);
    const Tensor dg = slot(shape(gate), dtype(gate));
    const Tensor du = slot(shape(up), dtype(up));
    emit("fused::swiglu_backward", {g, use(gate), use(up)}, {dg, du},
         10 * numel(gate));
    addGradient(up, du);
    addGradient(gate, dg);
  });
  return result;
}

Tensor SegmentBuilder::norm(Tensor x, Tensor weight, Tensor bias) {
  const bool layer = bias >= 0;
  const std::string op =
      layer ? "aten::native_layer_norm" : "aten::_fused_rms_norm";
  const Tensor result = slot(shape(x), dtype(x));
  Shape rows = shape(x);
  rows.back() = layer ? 2 : 1; // mean and reciprocal deviation
  const Tensor statistics = slot(rows, DType::F32);
  std::vector<Tensor> args = {x, weight};
  if (layer)
    args.push_back(bias);
  emit(op, args, {result, statistics}, 5 * numel(x));
  node({result}, [=, this] {
    const Tensor g = gradient(result);
    const Tensor dx = slot(shape(x), dtype(x));
    const Tensor dw = slot(shape(weight), dtype(weight));
    std::vector<Tensor> results = {dx, dw};
    if (layer)
      results.push_back(slot(shape(bias), dtype(bias)));
    emit(op + "_backward", {g, use(x), use(statistics), weight}, results,
         10 * numel(x), moved({g, x, x, g}, {dx}));
    addGradient(x, dx);
    addGradient(weight, dw);
    if (layer)
      addGradient(bias, results[2]);
  });
  return result;
}

Tensor SegmentBuilder::decomposedNorm(Tensor x, Tensor weight,
                                      bool weightInFloat) {
  const DType original = dtype(x);
  const Tensor wide = cast(x, DType::F32);
  const Tensor square = unary("pow.Tensor_Scalar", wide, Saves::Input);
  Shape rows = shape(x);
  rows.back() = 1;
  const Tensor mean = slot(rows, DType::F32);
  emit("aten::mean.dim", {square}, {mean}, numel(x));
  node({mean}, [=, this] {
    const Tensor g = gradient(mean);
    // The gradient is expanded, and divided into a tensor of its own.
    const Tensor d = slot(shape(square), DType::F32);
    emit("aten::div.Scalar", {g}, {d}, numel(square));
    addGradient(square, d);
  });
  const Tensor shifted = unary("add.Scalar", mean, Saves::Nothing);
  const Tensor inverse = unary("rsqrt", shifted, Saves::Output);
  const Tensor scaled = mul(wide, inverse);
  if (weightInFloat)
    return cast(mul(scaled, weight), original);
  return mul(cast(scaled, original), weight);
}

Tensor SegmentBuilder::complexRope(Tensor x) {
  const DType original = dtype(x);
  const Tensor wide = cast(x, DType::F32);
  const Tensor turned = unary("mul.Complex", wide, Saves::Nothing);
  return cast(turned, original);
}

Tensor SegmentBuilder::rotateHalfRope(Tensor x) {
  const Tensor direct = unary("mul.Cos", x, Saves::Nothing);
  const Tensor half = unary("neg", x, Saves::Nothing);
  const Tensor turned = unary("cat", half, Saves::Nothing);
  const Tensor crossed = unary("mul.Sin", turned, Saves::Nothing);
  return add(direct, crossed);
}

Tensor SegmentBuilder::fusedRope(Tensor x) {
  return unary("fused_rope", x, Saves::Nothing);
}

Tensor SegmentBuilder::repeatHeads(Tensor x, int64_t heads) {
  if (shape(x)[1] == heads)
    return x;
  Shape size = shape(x);
  size[1] = heads;
  const Tensor result = slot(size, dtype(x));
  emit("aten::clone", {x}, {result}, 0, moved({result}, {result}));
  node({result}, [=, this] {
    const Tensor g = gradient(result);
    const Tensor dx = slot(shape(x), dtype(x));
    emit("aten::sum.dim_IntList", {g}, {dx}, numel(g));
    addGradient(x, dx);
  });
  return result;
}

Tensor SegmentBuilder::third(Tensor projected, const Shape &size) {
  const Tensor result = alias(projected, size);
  emit("aten::split", {projected}, {result}, 0, 0, true);
  // The gradients of queries, keys and values are joined by one copy.
  node({result}, [=, this] {
    std::vector<Tensor> &parts = thirds[projected];
    parts.push_back(gradient(result));
    if (parts.size() < 3)
      return;
    const Tensor whole = slot(shape(projected), dtype(projected));
    emit("aten::cat", parts, {whole}, 0);
    addGradient(projected, whole);
  });
  return result;
}

Tensor SegmentBuilder::attention(Tensor q, Tensor k, Tensor v) {
  const Shape &size = shape(q);
  const Tensor result = slot(size, dtype(q));
  const Tensor sums = slot({size[0], size[1], size[2]}, DType::F32);
  // Two products of S x S scores of which a causal mask leaves half.
  const double flops = 4 * numel(q) * static_cast<double>(size[2]) / 2;
  emit("aten::_scaled_dot_product_flash_attention", {q, k, v}, {result, sums},
       flops);
  node({result}, [=, this] {
    const Tensor dq = slot(shape(q), dtype(q));
    const Tensor dk = slot(shape(k), dtype(k));
    const Tensor dv = slot(shape(v), dtype(v));
    emit("aten::_scaled_dot_product_flash_attention_backward",
         {gradient(result), use(q), use(k), use(v), use(result), use(sums)},
         {dq, dk, dv}, 2.5 * flops);
    addGradient(q, dq);
    addGradient(k, dk);
    addGradient(v, dv);
  });
  return result;
}

Tensor SegmentBuilder::embedding(Tensor table, Tensor ids) {
  Shape size = shape(ids);
  size.push_back(shape(table)[1]);
  const Tensor result = slot(size, dtype(table));
  emit("aten::embedding", {table, ids}, {result}, 0, 2 * bytes(result));
  node({result}, [=, this] {
    const Tensor g = gradient(result);
    const Tensor d = slot(shape(table), dtype(table));
    emit("aten::embedding_dense_backward", {g, ids}, {d}, numel(g));
    addGradient(table, d);
  });
  return result;
}

void SegmentBuilder::hold(Tensor t, bool toTheEnd) {
  held.push_back(t);
  holdsToTheEnd = toTheEnd;
}

Tensor SegmentBuilder::crossEntropy(Tensor logits, Loss loss) {
  const int64_t tokens = shape(logits)[0];
  const Tensor result = slot({}, DType::F32);
  if (loss == Loss::Eager) {
    const Tensor scores = slot(shape(logits), dtype(logits));
    emit("aten::_log_softmax", {logits}, {scores}, 4 * numel(logits));
    node({scores}, [=, this] {
      const Tensor d = slot(shape(logits), dtype(logits));
      emit("aten::_log_softmax_backward_data", {gradient(scores), use(scores)},
           {d}, 4 * numel(logits));
      addGradient(logits, d);
    });
    // The caller holds what it passed until the loss is there.
    std::vector<Tensor> args = {scores, logits};
    args.insert(args.end(), held.begin(), held.end());
    emit("aten::nll_loss_forward", args, {result}, static_cast<double>(tokens),
         static_cast<double>(8 * tokens));
    node({result}, [=, this] {
      const Tensor d = slot(shape(scores), dtype(scores));
      emit("aten::nll_loss_backward", {gradient(result), use(scores)}, {d},
           static_cast<double>(tokens), bytes(d));
      addGradient(scores, d);
    });
    return result;
  }
  const Tensor sums = slot({tokens}, DType::F32);
  emit("fused::cross_entropy", {logits}, {result, sums}, 5 * numel(logits),
       (loss == Loss::Compiled ? 2 : 1) * bytes(logits));
  node({result}, [=, this] {
    const bool inPlace = loss == Loss::InPlaceFused;
    const Tensor d = inPlace ? alias(logits, shape(logits))
                             : slot(shape(logits), dtype(logits));
    const int index = emit("fused::cross_entropy_backward",
                           {gradient(result), use(logits), use(sums)}, {d},
                           4 * numel(logits), 2 * bytes(logits));
    // It allocates nothing, but it is no view: it takes its time.
    graph.view[index] = inPlace;
    addGradient(logits, d);
  });
  return result;
}

SegmentGraph SegmentBuilder::finish(const std::vector<Tensor> &outputs) {
  plan::Function &function = graph.function;
  function.inputs = inputs;
  graph.inputs = static_cast<int>(inputs.size());
  for (Tensor t : inputs)
    graph.inputHasGradient.push_back(differentiable[t]);
  graph.outputs = static_cast<int>(outputs.size());
  function.outputs = outputs;
  forward = false;
  for (Tensor t : outputs) {
    if (!differentiable[t])
      continue;
    const Tensor tangent = slot(shape(t), dtype(t));
    function.inputs.push_back(tangent);
    gradients[t] = tangent;
  }
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const bool reached =
        std::any_of(it->outputs.begin(), it->outputs.end(),
                    [&](Tensor t) { return gradient(t) >= 0; });
    if (!reached)
      continue;
    ++currentNode;
    it->backward();
  }
  if (holdsToTheEnd)
    for (Tensor t : held)
      emit("aten::alias", {t}, {alias(t, shape(t))}, 0, 0, true);
  for (Tensor t : inputs)
    if (differentiable[t] && gradient(t) >= 0) {
      function.outputs.push_back(gradient(t));
      ++graph.inputGradients;
    }
  for (Tensor t : params)
    if (gradient(t) >= 0) {
      function.outputs.push_back(gradient(t));
      ++graph.parameterGradients;
    }
  return std::move(graph);
}

} // namespace accel::validate
