//===- BuildMixture.cpp - A mixture of experts ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BuildMixture.h"

#include "dialects/Aten/Eager.h"
#include "frontends/HuggingFace/Activate.h"

#include <limits>

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::Value;
using mlir::ValueRange;

namespace {

class MixtureWriter {
public:
  MixtureWriter(FunctionWriter &f, const Mixture &mixture, Value rows,
                Value choiceBias, Value narrow)
      : f(f), mixture(mixture), rows(rows), choiceBias(choiceBias),
        narrow(narrow ? narrow : rows),
        gate(mixture.path + "." + mixture.router),
        experts(mixture.path + ".experts"), tokens(f.shape(rows).front()),
        chosen(tokens * mixture.chosen) {}

  MixtureValues run() {
    f.enter(gate);
    Value input = rows, weight = f.param(gate + ".weight");
    if (mixture.sigmoid) {
      input = f.op<ToCopyOp>(input, f.f32());
      weight = f.op<ToCopyOp>(weight, f.f32());
    }
    Value factor = f.op<TOp>(weight), bias = f.find(gate + ".bias");
    Value logits =
        bias ? f.op<AddmmOp>(bias, input, factor) : f.op<MmOp>(input, factor);
    if (mixture.softmaxOfChosen)
      logits = f.op<ToCopyOp>(logits, f.f32());
    if (mixture.sigmoid)
      routeBySigmoids(logits);
    else if (mixture.softmaxOfChosen)
      routeByWideLogits(logits);
    else if (mixture.clamped)
      routeByLogits(logits);
    else
      route(logits);
    MixtureValues values;
    values.rows = multiply();
    if (mixture.auxiliary)
      statistics(logits, values);
    return values;
  }

private:
  void route(Value logits) {
    Value probabilities =
        f.op<SoftmaxOp>(f.op<ToCopyOp>(logits, f.f32()), uint64_t(1));
    auto [values, positions] = topk(probabilities, mixture.chosen);
    if (mixture.normalize)
      values = f.op<DivTensorOp>(values, sum(values, 1, true));
    scores = mixture.scoresInFp32 ? values : f.op<TypeAsOp>(values, logits);
    choices = positions;
  }

  void routeByWideLogits(Value logits) {
    auto [values, positions] = topk(logits, mixture.chosen);
    scores = f.op<TypeAsOp>(f.op<SoftmaxOp>(values, uint64_t(1)), rows);
    choices = positions;
  }

  void routeByLogits(Value logits) {
    auto [values, positions] = topk(logits, mixture.chosen);
    scores = f.op<SoftmaxOp>(values, uint64_t(1));
    scores.getDefiningOp()->setAttr(ownTypeAttr, f.unit(true));
    choices = positions;
  }

  void routeBySigmoids(Value logits) {
    Value all = f.op<SigmoidOp>(logits);
    Value preferred = f.op<AddTensorOp>(all, choiceBias);
    if (mixture.groupsChosen < mixture.groups)
      preferred = bestGroups(preferred);
    choices = topk(preferred, mixture.chosen).second;
    scores = f.op<GatherOp>(all, choices, uint64_t(1));
    if (mixture.normalize)
      scores = f.op<DivTensorOp>(
          scores, f.op<AddScalarOp>(sum(scores, 1, true), 1e-20));
    if (mixture.scale != 1)
      scores = f.op<MulScalarOp>(scores, mixture.scale);
  }

  /// Below all others where an expert's group is not among the best.
  Value bestGroups(Value preferred) {
    const int64_t size = mixture.experts / mixture.groups;
    Value grouped = f.view(preferred, {tokens, mixture.groups, size});
    Value two = f.op<TopkOp>(grouped, uint64_t(2), uint64_t(2));
    Value best = topk(sum(two, 2, false), mixture.groupsChosen).second;
    // 1 where the group is not chosen.
    Value left = f.op<FullOp>(llvm::ArrayRef<int64_t>{tokens, mixture.groups},
                              f.scalar(1), f.f32());
    left = f.op<ScatterValueOp>(left, best, uint64_t(1), f.scalar(0));
    left = f.op<GtScalarOp>(f.op<UnsqueezeOp>(left, uint64_t(2)), 0.0);
    Value masked = f.op<MaskedFillScalarOp>(
        grouped, left, f.scalar(-std::numeric_limits<double>::infinity()));
    return f.view(masked, {tokens, mixture.experts});
  }

  Value sum(Value x, int64_t dim, bool keeps) {
    return f.op<SumDimOp>(x, llvm::ArrayRef<int64_t>{dim}, keeps);
  }

  /// The largest of each row, and where they stand.
  std::pair<Value, Value> topk(Value x, int64_t count) {
    Value values = f.op<TopkOp>(x, uint64_t(count), uint64_t(1));
    return {values, values.getDefiningOp()->getResult(1)};
  }

  /// Rows of `table` in the order of `positions`.
  Value pick(Value table, Value positions) {
    return f.op<EmbeddingOp>(table, positions, uint64_t(-1));
  }
  Value count(int64_t end) {
    return f.op<ArangeOp>(uint64_t(0), uint64_t(end), uint64_t(1), f.i64());
  }
  /// Each row times its expert's matrix, [E, out, in] or, of clamped experts,
  /// [E, in, out] with a bias for each; `sorted`: each row's expert.
  Value linear(Value rows, const std::string &name, Value sorted, Value ends) {
    Value matrices = f.param(name);
    if (!mixture.clamped)
      return f.op<GroupedMmOp>(
          rows, f.op<TransposeIntOp>(matrices, uint64_t(1), uint64_t(2)), ends);
    Value biases = pick(f.param(name + "_bias"), sorted);
    return f.op<AddTensorOp>(f.op<GroupedMmOp>(rows, matrices, ends), biases);
  }

  Value multiply() {
    f.enter(experts);
    Value ids = f.view(choices, {chosen});
    Value sorted = f.op<SortStableOp>(ids, uint64_t(0), false);
    Value order = sorted.getDefiningOp()->getResult(1);
    Value token = f.op<FloorDivideScalarOp>(order, uint64_t(mixture.chosen));
    Value gathered = pick(narrow, token);
    Value weights = pick(f.view(scores, {chosen, 1}), order);
    Value ends = f.op<SearchsortedTensorOp>(sorted, count(mixture.experts),
                                            /*out_int32=*/true, /*right=*/true);
    const char *up = mixture.plain ? ".up_proj" : ".gate_up_proj";
    Value inner = activate(linear(gathered, experts + up, sorted, ends));
    Value out = linear(inner, experts + ".down_proj", sorted, ends);
    Value weighted = f.op<MulTensorOp>(out, weights);
    Value back = f.op<ScatterSrcOp>(order, order, count(chosen), uint64_t(0));
    Value restored = f.view(pick(weighted, back),
                            {tokens, mixture.chosen, f.shape(narrow).back()});
    return f.op<TypeAsOp>(sum(restored, 1, false), narrow);
  }

  /// (u + 1) g sigmoid(alpha g) of the clamped columns.
  Value activateClamped(Value both) {
    const uint64_t dim = 1, width = 2 * uint64_t(mixture.intermediateSize);
    auto every = [&](uint64_t begin) -> Value {
      return f.op<SliceTensorOp>(both, dim, begin, width, uint64_t(2));
    };
    const mlir::TypedAttr most = f.scalar(mixture.clamped->limit),
                          least = f.scalar(-mixture.clamped->limit);
    Value gate = every(0), up = every(1);
    gate = f.op<ClampOp>(gate, mlir::TypedAttr(), most);
    up = f.op<ClampOp>(up, least, most);
    Value share =
        f.op<SigmoidOp>(f.op<MulScalarOp>(gate, mixture.clamped->alpha));
    Value glu = f.op<MulTensorOp>(gate, share);
    return f.op<MulTensorOp>(f.op<AddScalarOp>(up, 1.0), glu);
  }

  /// act(first half) * second half, or the square of what is above 0.
  Value activate(Value both) {
    if (mixture.clamped)
      return activateClamped(both);
    if (mixture.plain) {
      f.enter(experts + ".act_fn");
      Value inner = huggingface::activate(f, Activation::Relu2, both);
      f.enter(experts);
      return inner;
    }
    uint64_t half = uint64_t(mixture.intermediateSize), dim = 1;
    Value gate = f.op<SliceTensorOp>(both, dim, uint64_t(0), half, uint64_t(1));
    Value up = f.op<SliceTensorOp>(both, dim, half, 2 * half, uint64_t(1));
    f.enter(experts + ".act_fn");
    gate = huggingface::activate(f, mixture.activation, gate);
    f.enter(experts);
    return f.op<MulTensorOp>(gate, up);
  }

  /// load_balancing_loss_func chooses anew, in the dtype of the logits.
  void statistics(Value logits, MixtureValues &values) {
    f.enter(gate);
    Value probabilities = f.op<SoftmaxOp>(logits, uint64_t(1));
    Value ids = f.view(topk(probabilities, mixture.chosen).second, {chosen});
    values.counts =
        f.op<HistcOp>(f.op<ToCopyOp>(ids, f.f32()), uint64_t(mixture.experts),
                      uint64_t(0), uint64_t(mixture.experts));
    values.probabilities =
        sum(f.op<ToCopyOp>(probabilities, f.f32()), 0, false);
  }

  FunctionWriter &f;
  const Mixture &mixture;
  Value rows, choiceBias, narrow, scores, choices;
  const std::string gate, experts; // modules
  int64_t tokens, chosen;
};

} // namespace

MixtureValues accel::huggingface::writeMixture(FunctionWriter &f,
                                               const Mixture &mixture,
                                               Value rows, Value choiceBias,
                                               Value narrow) {
  return MixtureWriter(f, mixture, rows, choiceBias, narrow).run();
}

Value accel::huggingface::addBalancingLoss(FunctionWriter &f,
                                           const Mixture &mixture, Value loss,
                                           ValueRange counts,
                                           ValueRange probabilities,
                                           int64_t tokens) {
  auto mean = [&](ValueRange parts) {
    Value sum = parts.front();
    for (Value part : parts.drop_front())
      sum = f.op<AddTensorOp>(sum, part);
    return f.op<DivScalarOp>(sum, double(tokens) * double(parts.size()));
  };
  Value probability = mean(probabilities);
  Value product = f.op<MulTensorOp>(mean(counts), probability);
  Value sum = f.op<SumDimOp>(product, llvm::ArrayRef<int64_t>{0}, false);
  Value balance = f.op<MulScalarOp>(sum, mixture.experts);
  return f.op<AddTensorOp>(loss,
                           f.op<MulScalarOp>(balance, *mixture.auxiliary));
}
