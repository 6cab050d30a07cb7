//===- LowerConvolution.cpp - Rules for convolutions ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A convolution whose taps are few or do not overlap is one matmul of
// what the taps see, as the families' own builders write it (patches of
// images, three taps of sound). Others are PyTorch's kernel.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Lower.h"

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using Results = Lowering::Results;
using Maybe = std::optional<Lowering::Results>;

namespace {

struct Convolution {
  Value input, weight, bias;
  SmallVector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
};

Value product(Lowering &f, Value rows, Value weight, Value bias) {
  Value turned = f.make<aten::TOp>(weight);
  return bias ? f.make<aten::AddmmOp>({bias, rows, turned})
              : f.make<aten::MmOp>({rows, turned});
}

Value slice(Lowering &f, Value x, int64_t dim, int64_t start, int64_t end,
            int64_t step = 1) {
  if (start == 0 && end == f.shape(x)[dim] && step == 1)
    return x;
  return f.make<aten::SliceTensorOp>(x, {{"dim", f.integer(dim)},
                                         {"start", f.integer(start)},
                                         {"end", f.integer(end)},
                                         {"step", f.integer(step)}});
}

Value permute(Lowering &f, Value x, ArrayRef<int64_t> dims) {
  return f.make<aten::PermuteOp>(x, {{"dims", f.integers(dims)}});
}

/// Images [B, C, H, W] whose patches do not overlap: each is a row.
Value patches(Lowering &f, const Convolution &c) {
  ArrayRef<int64_t> image = f.shape(c.input), taps = f.shape(c.weight);
  const int64_t batch = image[0], channels = image[1], out = taps[0];
  const int64_t high = taps[2], wide = taps[3];
  const int64_t down = image[2] / high, across = image[3] / wide;
  if (!down || !across)
    return {};
  Value pixels = slice(f, c.input, 2, 0, down * high);
  pixels = slice(f, pixels, 3, 0, across * wide);
  Value grid = f.reshape(pixels, {batch, channels, down, high, across, wide});
  if (!grid)
    return {};
  grid = f.contiguous(permute(f, grid, {0, 2, 4, 1, 3, 5}));
  const int64_t size = channels * high * wide;
  Value rows = f.view(grid, {batch * down * across, size});
  Value x = product(f, rows, f.reshape(c.weight, {out, size}), c.bias);
  x = f.view(x, {batch, down, across, out});
  return x ? permute(f, x, {0, 3, 1, 2}) : Value();
}

/// Sequences [B, C, T]: a row holds what the taps see at one place.
Value taps(Lowering &f, const Convolution &c) {
  const int64_t batch = f.shape(c.input)[0], in = f.shape(c.input)[1],
                length = f.shape(c.input)[2];
  const int64_t out = f.shape(c.weight)[0], width = f.shape(c.weight)[2];
  const int64_t border = c.padding[0], stride = c.stride[0];
  const int64_t places = (length + 2 * border - width) / stride + 1;
  if (places < 1 || border > 1 || length < 1)
    return {};
  Value x = f.contiguous(f.transpose(c.input, 1, 2));
  if (border) {
    Value zeros = f.make<aten::ZerosLikeOp>(slice(f, x, 1, 0, 1));
    x = f.make<aten::CatOp>({zeros, x, zeros}, {{"dim", f.integer(1)}});
  }
  if (!x)
    return {};
  SmallVector<Value> seen;
  for (int64_t tap = 0; tap < width; ++tap)
    seen.push_back(
        slice(f, x, 1, tap, tap + (places - 1) * stride + 1, stride));
  Value rows = f.make<aten::CatOp>(seen, {{"dim", f.integer(2)}});
  rows = f.reshape(rows, {batch * places, width * in});
  Value weight = f.contiguous(permute(f, c.weight, {0, 2, 1}));
  weight = f.view(weight, {out, width * in});
  Value result = f.view(product(f, rows, weight, c.bias), {batch, places, out});
  return f.transpose(result, 1, 2);
}

std::optional<Convolution> read(Lowering &f, const Call &call) {
  Convolution c;
  c.input = call.tensor("input");
  c.weight = call.tensor("weight");
  c.bias = call.tensor("bias");
  auto stride = call.integers("stride"), padding = call.integers("padding"),
       dilation = call.integers("dilation");
  auto groups = call.integer("groups");
  if (!c.input || !c.weight || !stride || !padding || !dilation || !groups ||
      f.rank(c.input) != f.rank(c.weight) || f.rank(c.input) < 3)
    return std::nullopt;
  const size_t dims = size_t(f.rank(c.input)) - 2;
  for (auto *list : {&*stride, &*padding, &*dilation}) {
    if (list->size() == 1)
      list->assign(dims, list->front());
    if (list->size() != dims)
      return std::nullopt;
  }
  c.stride = *stride;
  c.padding = *padding;
  c.dilation = *dilation;
  c.groups = *groups;
  return c;
}

Maybe convolution(Lowering &f, const Call &call) {
  auto c = read(f, call);
  if (!c || call.flag("transposed"))
    return std::nullopt;
  auto all = [](ArrayRef<int64_t> list, int64_t value) {
    return llvm::all_of(list, [&](int64_t x) { return x == value; });
  };
  const size_t dims = c->stride.size();
  ArrayRef<int64_t> taps_ = f.shape(c->weight).drop_front(2);
  Value result;
  if (c->groups == 1 && all(c->dilation, 1)) {
    if (dims == 2 && all(c->padding, 0) && ArrayRef(c->stride) == taps_)
      result = patches(f, *c);
    else if (dims == 1 && taps_[0] <= 4)
      result = taps(f, *c);
  }
  if (result)
    return Results{result};
  SmallVector<Value> operands = {c->input, c->weight};
  if (c->bias)
    operands.push_back(c->bias);
  return Results{f.make<aten::ConvolutionOp>(
      operands, {{"stride", f.integers(c->stride)},
                 {"padding", f.integers(c->padding)},
                 {"dilation", f.integers(c->dilation)},
                 {"transposed", f.builder().getBoolAttr(false)},
                 {"output_padding", f.integers(SmallVector<int64_t>(dims, 0))},
                 {"groups", f.integer(c->groups)}})};
}

} // namespace

void torchexport::addConvolutionRules(llvm::StringMap<Lowering::Rule> &rules) {
  for (const char *name :
       {"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"})
    rules[name] = convolution;
}
