//===- InnerBytes.cpp - What CUDA operators need inside -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// As torch 2.15 asks its allocator for it, which the dry GPU shows (test/dry,
// DRY_ALLOCATIONS). What cuDNN's engines take beside is known to cuDNN alone
// and counted as nothing.
//
//===----------------------------------------------------------------------===//
#include "passes/Segments/InnerBytes.h"

#include "runtime/plan/Exchanges.h"

#include <algorithm>
#include <string_view>

namespace accel {

namespace {

constexpr int64_t kibi = 1024, mebi = 1024 * kibi;

int64_t roundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

class Reader {
public:
  Reader(const plan::Function &function, const plan::Instruction &instruction)
      : function(function), instruction(instruction) {}

  const plan::Slot *tensor(size_t argument) const {
    if (argument >= instruction.args.size() ||
        instruction.args[argument].kind != plan::Arg::Kind::Tensor)
      return nullptr;
    return &function.slots[instruction.args[argument].slot];
  }
  bool uses(size_t result) const {
    return result < instruction.results.size() &&
           instruction.results[result] >= 0;
  }

  const plan::Function &function;
  const plan::Instruction &instruction;
};

int64_t numel(const plan::Slot &slot) {
  int64_t n = 1;
  for (int64_t size : slot.shape)
    n *= size;
  return n;
}
int64_t bytesOf(const plan::Slot &slot) {
  return numel(slot) * plan::itemSize(slot.dtype);
}

/// Sizes of attention, however its tensors are laid out.
struct Heads {
  int64_t batch, heads, length, size, keyHeads, keyLength;
  int64_t rows() const { return batch * heads * length; }
};
Heads headsOf(const plan::Slot &query, const plan::Slot &key,
              bool tokensFirst) {
  const std::vector<int64_t> &q = query.shape, &k = key.shape;
  const size_t head = tokensFirst ? 2 : 1, token = tokensFirst ? 1 : 2;
  return {q[0], q[head], q[token], q[3], k[head], k[token]};
}

/// Gradients of queries are summed up in f32 by the blocks of keys.
void cudnnBackward(const Heads &h, InnerBytes &inner) {
  inner.after = {h.rows() * (h.size + 1) * 4};
}
void flashBackward(const Heads &h, plan::DType dtype, InnerBytes &inner) {
  const int64_t rows = h.batch * h.heads * roundUp(h.length, 128);
  const int64_t size = h.size <= 192 ? roundUp(h.size, 32) : 256;
  inner.after = {rows * 4, rows * size * 4};
  if (h.keyHeads != h.heads) // each head's, before they are added up
    inner.after.insert(inner.after.end(), 2,
                       h.batch * h.heads * h.keyLength * h.size *
                           plan::itemSize(dtype));
}
void efficientBackward(const Heads &h, plan::DType dtype, InnerBytes &inner) {
  constexpr int64_t block = 64, header = 16;
  const int64_t blocks = h.batch * h.heads *
                         (roundUp(h.length, block) / block) *
                         (roundUp(h.size, block) / block);
  const int64_t row = h.rows() * 4;
  const int64_t accumulators = blocks * (header + block * block * 4);
  if (h.keyHeads != h.heads) // each head's, before they are added up
    inner.after.assign(2, h.batch * h.heads * h.keyLength * h.size *
                              plan::itemSize(dtype));
  const auto first = static_cast<int64_t>(inner.after.size());
  auto allocates = [&](std::initializer_list<int64_t> bytes) {
    inner.after.insert(inner.after.end(), bytes);
  };
  if (dtype == plan::DType::F32) // products of gradients and outputs, their sum
    allocates({h.rows() * h.size * 4, row, row, -(first + 2), -(first + 1),
               accumulators});
  else
    allocates({row, accumulators});
}

bool attention(std::string_view name, const Reader &reader, InnerBytes &inner) {
  const bool backward = name.ends_with("_backward");
  const bool cudnn = name.find("cudnn_attention") != name.npos;
  const bool flash = name.find("flash_attention") != name.npos;
  const bool efficient = name.find("efficient_attention") != name.npos;
  if (!cudnn && !flash && !efficient)
    return false;
  const plan::Slot *query = reader.tensor(backward ? 1 : 0);
  const plan::Slot *key = reader.tensor(backward ? 2 : 1);
  if (!query || !key || query->shape.size() != 4 || key->shape.size() != 4)
    return true;
  const Heads heads =
      headsOf(*query, *key, name.starts_with("aten::_flash_attention"));
  const bool drops = name.starts_with("accel::");
  if (drops && backward && flash)
    inner.before = {16}; // the generator's state, as the forward had it
  if (!backward) {
    // Two numbers of a generator's state, which nobody asks for. Where they are
    // drawn by, flash makes them twice, and efficient on the host.
    const size_t state = efficient ? 2 : 6;
    if (drops && flash)
      inner.after.insert(inner.after.end(), {16, 8, 16});
    else if (!drops)
      for (size_t number : {state, state + 1})
        if (!reader.uses(number))
          (flash ? inner.after : inner.before).push_back(8);
    if (!reader.uses(1)) // logsumexp
      inner.after.push_back(heads.rows() * 4);
  } else if (cudnn) {
    cudnnBackward(heads, inner);
  } else if (flash) {
    flashBackward(heads, query->dtype, inner);
  } else {
    efficientBackward(heads, query->dtype, inner);
  }
  return true;
}

} // namespace

int64_t gemmWorkspace(double capability) {
  return capability >= 9.0 ? 32 * mebi : 8 * mebi + 128 * kibi;
}

/// Without overload.
static std::string_view nameOf(const plan::Instruction &instruction) {
  const std::string_view name = instruction.op;
  return name.substr(0, name.find('.', name.find("::")));
}

int64_t libraryWorkspace(const plan::Function &function,
                         const plan::Instruction &instruction,
                         const CudaDevice &device) {
  const std::string_view name = nameOf(instruction);
  const plan::Slot *self = Reader(function, instruction).tensor(0);
  if (!self)
    return 0;
  if (name == "aten::addmm") // cuBLASLt adds a bias, with its own
    return self->shape.size() == 1 ? mebi : gemmWorkspace(device.capability);
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::baddbmm" ||
      (name == "aten::_grouped_mm" && self->dtype != plan::DType::BF16))
    return gemmWorkspace(device.capability);
  return 0;
}

InnerBytes innerBytesOfAll(const plan::Function &function,
                           const plan::Instruction &instruction,
                           const CudaDevice &device) {
  if (const int64_t own = libraryWorkspace(function, instruction, device))
    return {{}, {own}};
  return innerBytes(function, instruction, device);
}

int64_t peakOf(const InnerBytes &inner) {
  int64_t bytes = 0, peak = 0;
  for (int64_t each : inner.before)
    bytes += each;
  for (int64_t each : inner.after) {
    bytes += each >= 0 ? each : -inner.after[static_cast<size_t>(-each - 1)];
    peak = std::max(peak, bytes);
  }
  return std::max(peak, bytes);
}

/// Of ATen's sum, along the dimensions of its second argument or all.
static std::vector<int64_t> sumBytes(const plan::Instruction &instruction,
                                     const plan::Slot &self,
                                     const CudaDevice &device) {
  const auto rank = static_cast<int64_t>(self.shape.size());
  std::vector<bool> reduced(self.shape.size());
  if (instruction.args.size() > 1 &&
      instruction.args[1].kind == plan::Arg::Kind::Ints)
    for (int64_t dim : instruction.args[1].ints)
      reduced[static_cast<size_t>(dim < 0 ? dim + rank : dim)] = true;
  if (std::find(reduced.begin(), reduced.end(), true) == reduced.end())
    reduced.assign(self.shape.size(), true);
  const int64_t size = plan::itemSize(self.dtype);
  return reductionBytes(self.shape, reduced, std::max<int64_t>(size, 4),
                        device);
}

InnerBytes innerBytes(const plan::Function &function,
                      const plan::Instruction &instruction,
                      const CudaDevice &device) {
  InnerBytes inner;
  const std::string_view name = nameOf(instruction);
  const Reader reader(function, instruction);
  if (instruction.kind == plan::Instruction::Kind::Opaque ||
      plan::isExchange(instruction)) {
    if (instruction.workspaceBytes > 0)
      inner.after = {instruction.workspaceBytes};
    return inner;
  }
  if (attention(name, reader, inner))
    return inner;
  const plan::Slot *self = reader.tensor(0);
  if (!self)
    return inner;
  const int64_t rows =
      self->shape.empty()
          ? 1
          : numel(*self) / std::max<int64_t>(self->shape.back(), 1);
  auto allocates = [&](int64_t bytes) { inner.after.push_back(bytes); };
  if (name == "aten::_grouped_mm") {
    // One kernel for all experts, with descriptors for each multiprocessor of
    // Hopper.
    constexpr int64_t descriptors = 132 * 512;
    if (self->dtype == plan::DType::BF16)
      allocates(descriptors);
  } else if (name == "aten::sum") {
    for (int64_t bytes : sumBytes(instruction, *self, device))
      allocates(bytes);
  } else if (name == "aten::_softmax_backward_data") {
    allocates(bytesOf(*self));
  } else if (name == "aten::pow") {
    allocates(8); // the exponent
  } else if (name == "aten::sort") {
    allocates(numel(*self) * plan::itemSize(plan::DType::I64));
  } else if (name == "accel::dropout") {
    inner.before = {numel(*self)}; // what stays
  } else if (name == "aten::_fused_rms_norm" && !reader.uses(1)) {
    allocates(rows * 4);
  } else if (name == "aten::native_layer_norm") {
    for (size_t statistic : {1, 2})
      if (!reader.uses(statistic))
        allocates(rows * 4);
  }
  return inner;
}

} // namespace accel
