//===- RopeTables.cpp - Positions as operators ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/RopeTables.h"

#include <cmath>
#include <numbers>

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::Value;
using mlir::ValueRange;

/// start, start + step, ... below end, in fp32.
static Value counted(FunctionWriter &f, int64_t start, int64_t end,
                     int64_t step = 1) {
  return f.op<ArangeOp>(uint64_t(start), uint64_t(end), uint64_t(step),
                        f.f32());
}

//===----------------------------------------------------------------------===//
// Rotary embeddings
//===----------------------------------------------------------------------===//

/// Llama 3.1: long wavelengths are divided by `factor`, short ones stay, and
/// those between are interpolated.
static Value llama3Frequencies(FunctionWriter &f, const Rope &rope,
                               Value inverse) {
  double context = double(rope.originalMaxPositions);
  double longest = context / rope.lowFrequencyFactor;
  double shortest = context / rope.highFrequencyFactor;
  Value wavelength =
      f.op<MulScalarOp>(f.op<ReciprocalOp>(inverse), 2 * std::numbers::pi);
  Value isLong = f.op<GtScalarOp>(wavelength, longest);
  Value divided = f.op<DivScalarOp>(inverse, rope.factor);
  Value coarse = f.op<WhereSelfOp>(isLong, divided, inverse);
  Value turns = f.op<MulScalarOp>(f.op<ReciprocalOp>(wavelength), context);
  Value smooth =
      f.op<DivScalarOp>(f.op<SubScalarOp>(turns, rope.lowFrequencyFactor),
                        rope.highFrequencyFactor - rope.lowFrequencyFactor);
  Value far = f.op<DivScalarOp>(
      f.op<MulTensorOp>(f.op<RsubScalarOp>(smooth, 1.0), coarse), rope.factor);
  Value mixed = f.op<AddTensorOp>(far, f.op<MulTensorOp>(smooth, coarse));
  Value isShort = f.op<LtScalarOp>(wavelength, shortest);
  Value notShort = f.op<BitwiseNotOp>(isShort);
  Value notLong = f.op<BitwiseNotOp>(isLong);
  Value between = f.op<LogicalAndOp>(notShort, notLong);
  return f.op<WhereSelfOp>(between, mixed, coarse);
}

/// The numbers as a vector, a `full` for each run of equal ones.
static Value listed(FunctionWriter &f, const std::vector<double> &numbers) {
  std::vector<Value> runs;
  for (size_t begin = 0, end; begin < numbers.size(); begin = end) {
    for (end = begin + 1;
         end < numbers.size() && numbers[end] == numbers[begin];)
      ++end;
    int64_t size = int64_t(end - begin);
    runs.push_back(
        f.op<FullOp>(llvm::ArrayRef(size), f.scalar(numbers[begin]), f.f32()));
  }
  return runs.size() == 1 ? runs.front()
                          : Value(f.op<CatOp>(ValueRange(runs), uint64_t(0)));
}

/// YaRN: frequencies that turn often within the original context stay, those
/// that turn less than once are divided by `factor`, and between them is a
/// ramp.
static Value yarnFrequencies(FunctionWriter &f, const Rope &rope, int64_t dims,
                             Value powers) {
  auto bound = [&](double turns) {
    double context = double(rope.originalMaxPositions);
    return double(dims) * std::log(context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
  };
  double low = bound(rope.betaFast), high = bound(rope.betaSlow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, double(dims - 1));
  if (low == high)
    high += 0.001;
  Value kept = f.op<ReciprocalOp>(powers);
  Value divided = f.op<ReciprocalOp>(f.op<MulScalarOp>(powers, rope.factor));
  Value ramp = f.op<DivScalarOp>(
      f.op<SubScalarOp>(counted(f, 0, dims / 2), low), high - low);
  ramp = f.op<ClampOp>(ramp, f.scalar(0), f.scalar(1));
  Value keep = f.op<RsubScalarOp>(ramp, 1.0);
  Value unscaled = f.op<MulTensorOp>(kept, keep);
  return f.op<AddTensorOp>(
      f.op<MulTensorOp>(divided, f.op<RsubScalarOp>(keep, 1.0)), unscaled);
}

/// The base beyond the model's positions, "NTK-aware".
static double dynamicTheta(const Rope &rope, int64_t dims, int64_t sequence) {
  double longest = double(std::max(sequence, rope.maxPositions));
  double grown =
      rope.factor * longest / double(rope.maxPositions) - (rope.factor - 1);
  return rope.theta * std::pow(grown, double(dims) / double(dims - 2));
}

/// theta^(-2i/d), scaled as the rope type asks for. A number divided by a
/// tensor is PyTorch's reciprocal times the number.
static Value inverseFrequencies(FunctionWriter &f, const Rope &rope,
                                int64_t headDim, int64_t sequence) {
  int64_t dims = rope.dims(headDim);
  double theta = rope.kind == Rope::Kind::Dynamic
                     ? dynamicTheta(rope, dims, sequence)
                     : rope.theta;
  Value exponents = f.op<DivScalarOp>(counted(f, 0, dims, 2), double(dims));
  Value powers = f.op<PowScalarOp>(exponents, theta);
  if (rope.kind == Rope::Kind::Yarn)
    return yarnFrequencies(f, rope, dims, powers);
  if (rope.kind == Rope::Kind::LongRope) {
    bool within = sequence <= rope.originalMaxPositions;
    Value factors = listed(f, within ? rope.shortFactors : rope.longFactors);
    return f.op<ReciprocalOp>(f.op<MulTensorOp>(factors, powers));
  }
  Value inverse = f.op<ReciprocalOp>(powers);
  switch (rope.kind) {
  case Rope::Kind::Default:
  case Rope::Kind::Dynamic:
  case Rope::Kind::Yarn:
  case Rope::Kind::LongRope:
    return inverse;
  case Rope::Kind::Linear:
    return f.op<DivScalarOp>(inverse, rope.factor);
  case Rope::Kind::Llama3:
    return llama3Frequencies(f, rope, inverse);
  }
  llvm_unreachable("covered switch");
}

static Value ordered(FunctionWriter &f, Value angles, RopeOrder order) {
  if (order == RopeOrder::Once)
    return angles;
  if (order == RopeOrder::Halves)
    return f.op<CatOp>(ValueRange{angles, angles}, uint64_t(1));
  const int64_t rows = f.shape(angles)[0], count = f.shape(angles)[1];
  Value twice = f.op<ExpandOp>(f.op<UnsqueezeOp>(angles, uint64_t(2)),
                               llvm::ArrayRef<int64_t>{rows, count, 2});
  return f.view(f.op<CloneOp>(twice), {rows, 2 * count});
}

std::pair<Value, Value> accel::huggingface::ropeTables(FunctionWriter &f,
                                                       const Rope &rope,
                                                       int64_t headDim,
                                                       int64_t sequence,
                                                       RopeOrder order) {
  Value inverse = inverseFrequencies(f, rope, headDim, sequence);
  Value positions = f.op<ToCopyOp>(
      f.op<ArangeOp>(uint64_t(0), uint64_t(sequence), uint64_t(1), f.i64()),
      f.f32());
  Value angles =
      f.op<MulTensorOp>(f.op<UnsqueezeOp>(positions, uint64_t(1)), inverse);
  Value both = ordered(f, angles, order);
  auto scaled = [&](Value table) -> Value {
    if (rope.attentionFactor == 1)
      return table;
    return f.op<MulScalarOp>(table, rope.attentionFactor);
  };
  Value cos = scaled(f.op<CosOp>(both));
  return {cos, scaled(f.op<SinOp>(both))};
}

Value accel::huggingface::rotate(FunctionWriter &f, Value x, Value cos,
                                 Value sin) {
  int64_t width = f.shape(cos).back(), whole = f.shape(x).back();
  uint64_t half = uint64_t(width / 2), dim = 3;
  auto slice = [&](Value from, uint64_t begin, uint64_t end) -> Value {
    return f.op<SliceTensorOp>(from, dim, begin, end, uint64_t(1));
  };
  Value rest;
  if (width < whole) {
    rest = slice(x, uint64_t(width), uint64_t(whole));
    x = slice(x, 0, uint64_t(width));
  }
  Value first = slice(x, 0, half);
  Value second = slice(x, half, 2 * half);
  Value plain = f.op<MulTensorOp>(x, cos);
  Value turned = f.op<CatOp>(ValueRange{f.op<NegOp>(second), first}, dim);
  Value sum = f.op<AddTensorOp>(plain, f.op<MulTensorOp>(turned, sin));
  return rest ? f.op<CatOp>(ValueRange{sum, rest}, dim) : sum;
}

Value accel::huggingface::rotateNeighbours(FunctionWriter &f, Value x,
                                           Value cos, Value sin) {
  const int64_t width = f.shape(cos).back(), whole = f.shape(x).back();
  const uint64_t dim = 3;
  auto slice = [&](Value from, int64_t begin, int64_t end,
                   int64_t step) -> Value {
    return f.op<SliceTensorOp>(from, dim, uint64_t(begin), uint64_t(end),
                               uint64_t(step));
  };
  Value rest;
  if (width < whole) {
    rest = slice(x, width, whole, 1);
    x = slice(x, 0, width, 1);
  }
  Value second =
      f.op<UnsqueezeOp>(f.op<NegOp>(slice(x, 1, width, 2)), uint64_t(4));
  Value first = f.op<UnsqueezeOp>(slice(x, 0, width, 2), uint64_t(4));
  Value turned = f.op<CatOp>(ValueRange{second, first}, uint64_t(4));
  turned = f.view(turned, f.shape(x));
  Value plain = f.op<MulTensorOp>(x, cos);
  Value sum = f.op<AddTensorOp>(plain, f.op<MulTensorOp>(turned, sin));
  return rest ? f.op<CatOp>(ValueRange{sum, rest}, dim) : sum;
}

/// first cos - second sin, then second cos + first sin.
static Value turned(FunctionWriter &f, Value first, Value second, Value cos,
                    Value sin) {
  Value left = f.op<MulTensorOp>(first, cos);
  left = f.op<SubTensorOp>(left, f.op<MulTensorOp>(second, sin));
  Value right = f.op<MulTensorOp>(second, cos);
  right = f.op<AddTensorOp>(right, f.op<MulTensorOp>(first, sin));
  return f.op<CatOp>(ValueRange{left, right}, uint64_t(3));
}

Value accel::huggingface::rotateHalves(FunctionWriter &f, Value x, Value cos,
                                       Value sin) {
  const uint64_t width = uint64_t(f.shape(x).back()), dim = 3;
  Value first =
      f.op<SliceTensorOp>(x, dim, uint64_t(0), width / 2, uint64_t(1));
  Value second = f.op<SliceTensorOp>(x, dim, width / 2, width, uint64_t(1));
  return turned(f, first, second, cos, sin);
}

Value accel::huggingface::rotatePairs(FunctionWriter &f, Value x, Value cos,
                                      Value sin) {
  const uint64_t width = uint64_t(f.shape(x).back()), dim = 3;
  auto half = [&](Value table) -> Value {
    return f.op<SliceTensorOp>(table, uint64_t(f.shape(table).size() - 1),
                               uint64_t(0), width / 2, uint64_t(1));
  };
  auto every = [&](uint64_t begin) -> Value {
    return f.op<SliceTensorOp>(x, dim, begin, width, uint64_t(2));
  };
  cos = half(cos);
  sin = half(sin);
  Value first = every(0);
  return turned(f, first, every(1), cos, sin);
}

//===----------------------------------------------------------------------===//
// ALiBi
//===----------------------------------------------------------------------===//

/// base^start, base^(start + step), ...: `count` of them.
static Value powers(FunctionWriter &f, double base, int64_t start, int64_t step,
                    int64_t count) {
  return f.op<PowScalarOp>(counted(f, start, start + step * count, step), base);
}

static Value falconSlopes(FunctionWriter &f, int64_t heads) {
  int64_t round = int64_t(1) << int64_t(std::floor(std::log2(double(heads))));
  auto base = [](int64_t n) {
    return std::pow(2.0, -std::pow(2.0, -(std::log2(double(n)) - 3)));
  };
  Value slopes = powers(f, base(round), 1, 1, round);
  if (round == heads)
    return slopes;
  Value more = powers(f, base(2 * round), 1, 2, std::min(round, heads - round));
  return f.op<CatOp>(ValueRange{slopes, more}, uint64_t(0));
}

static Value mptSlopes(FunctionWriter &f, int64_t heads) {
  int64_t round = int64_t(1) << int64_t(std::ceil(std::log2(double(heads))));
  Value exponents =
      f.op<MulScalarOp>(counted(f, 1, round + 1), 8 / double(round));
  Value slopes = f.op<ReciprocalOp>(f.op<PowScalarOp>(exponents, 2.0));
  if (round == heads)
    return slopes;
  auto every = [&](uint64_t begin) -> Value {
    return f.op<SliceTensorOp>(slopes, uint64_t(0), begin, uint64_t(round),
                               uint64_t(2));
  };
  Value mixed = f.op<CatOp>(ValueRange{every(1), every(0)}, uint64_t(0));
  return f.op<SliceTensorOp>(mixed, uint64_t(0), uint64_t(0), uint64_t(heads),
                             uint64_t(1));
}

Value accel::huggingface::alibi(FunctionWriter &f, const Decoder &decoder,
                                int64_t sequence) {
  int64_t heads = decoder.heads;
  Value result;
  if (decoder.alibi == Decoder::Alibi::Mpt) {
    Value slopes = mptSlopes(f, heads);
    Value behind =
        f.op<SubScalarOp>(counted(f, 0, sequence), double(sequence - 1));
    result = f.op<MulTensorOp>(behind, f.op<UnsqueezeOp>(slopes, uint64_t(1)));
  } else {
    mlir::Type low = f.bf16();
    Value slopes = f.op<ToCopyOp>(falconSlopes(f, heads), low);
    Value positions = f.op<ToCopyOp>(counted(f, 0, sequence), low);
    result =
        f.op<MulTensorOp>(f.op<UnsqueezeOp>(slopes, uint64_t(1)), positions);
    result = f.op<ToCopyOp>(result, f.f32());
    result = f.op<DivScalarOp>(result, std::sqrt(double(decoder.headDim)));
  }
  return f.view(result, {1, heads, 1, sequence});
}
