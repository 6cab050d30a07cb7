//===- Operators.cpp - Operators that ATen does not have ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/Operators.h"

#include "runtime/execute/DroppedAttention.h"
#include "runtime/tensors/Kernels.h"
#include "runtime/tensors/Parallel.h"

#include <ATen/Context.h>
#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_dropout_backward.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

// The loops below are plain; wider vectors make them twice as fast.
#if defined(__x86_64__) && defined(__GNUC__)
#define ACCEL_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ACCEL_WIDE
#endif

namespace accel::run {

namespace {

/// A bijection of 64 bits (splitmix64's finalizer, Steele et al. 2014).
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

constexpr int lanes = 32;             // blocks of Philox at a time
constexpr int64_t tile = 4 * lanes;   // elements of these
constexpr int64_t grain = 256 * tile; // a thread's least share

/// Words of `lanes` blocks from `block` on, by element.
ACCEL_WIDE void draw(uint64_t key, uint64_t stream, uint64_t block,
                     uint32_t *words) {
  uint32_t x0[lanes], x1[lanes], x2[lanes], x3[lanes];
  for (int l = 0; l < lanes; ++l) {
    x0[l] = static_cast<uint32_t>(block + l);
    x1[l] = static_cast<uint32_t>((block + l) >> 32);
    x2[l] = static_cast<uint32_t>(stream);
    x3[l] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key),
           k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < lanes; ++l) {
      const uint64_t a = uint64_t(0xD2511F53u) * x0[l];
      const uint64_t b = uint64_t(0xCD9E8D57u) * x2[l];
      x0[l] = static_cast<uint32_t>(b >> 32) ^ x1[l] ^ k0;
      x1[l] = static_cast<uint32_t>(b);
      x2[l] = static_cast<uint32_t>(a >> 32) ^ x3[l] ^ k1;
      x3[l] = static_cast<uint32_t>(a);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int l = 0; l < lanes; ++l) {
    words[4 * l] = x0[l];
    words[4 * l + 1] = x1[l];
    words[4 * l + 2] = x2[l];
    words[4 * l + 3] = x3[l];
  }
}

/// Copies elements [begin, begin + count) of `self`, in logical order.
template <typename T>
void gather(const at::Tensor &self, int64_t begin, int64_t count, T *to) {
  const T *data = self.const_data_ptr<T>();
  const int64_t rank = self.dim();
  std::vector<int64_t> index(rank);
  int64_t rest = begin, offset = 0;
  for (int64_t d = rank - 1; d >= 0; --d) {
    index[d] = rest % self.size(d);
    rest /= self.size(d);
    offset += index[d] * self.stride(d);
  }
  for (int64_t i = 0; i < count; ++i) {
    to[i] = data[offset];
    for (int64_t d = rank - 1; d >= 0; --d) {
      offset += self.stride(d);
      if (++index[d] < self.size(d))
        break;
      offset -= self.size(d) * self.stride(d);
      index[d] = 0;
    }
  }
}

template <typename T>
void dropoutRange(const at::Tensor &self, T *out, bool contiguous, double p,
                  uint64_t key, uint64_t stream, int64_t begin, int64_t end) {
  using Acc = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Acc scale = p < 1 ? static_cast<Acc>(1 / (1 - p)) : Acc(0);
  const auto threshold = static_cast<uint64_t>(std::llround(p * 0x1p32));
  uint32_t words[tile];
  T gathered[tile];
  for (int64_t at = begin; at < end; at += tile) {
    const int64_t n = std::min(tile, end - at);
    draw(key, stream, static_cast<uint64_t>(at / 4), words);
    const T *in = gathered;
    if (contiguous)
      in = self.const_data_ptr<T>() + at;
    else
      gather(self, at, n, gathered);
    // Selected, not multiplied: an infinity that is dropped is 0.
    for (int64_t i = 0; i < n; ++i)
      out[at + i] = words[i] >= threshold
                        ? static_cast<T>(static_cast<Acc>(in[i]) * scale)
                        : T(0);
  }
}

at::Tensor dropout(const at::Tensor &self, double p, at::IntArrayRef key) {
  TORCH_CHECK(p >= 0 && p <= 1,
              "dropout probability has to be between 0 and "
              "1, but got ",
              p);
  TORCH_CHECK(key.size() == 2, "dropout draws by two integers, but got ",
              key.size());
  if (!self.is_cpu())
    return dropoutByGenerator(self, p, key);
  at::Tensor result = at::empty(self.sizes(), self.options());
  const int64_t pieces = (self.numel() + grain - 1) / grain;
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kBFloat16, at::kHalf, self.scalar_type(), "accel::dropout", [&] {
        scalar_t *out = result.mutable_data_ptr<scalar_t>();
        const bool contiguous = self.is_contiguous();
        parallelFor(0, pieces, 1, [&](int64_t begin, int64_t end) {
          dropoutRange<scalar_t>(self, out, contiguous, p,
                                 static_cast<uint64_t>(key[0]),
                                 static_cast<uint64_t>(key[1]), begin * grain,
                                 std::min(end * grain, self.numel()));
        });
      });
  return result;
}

at::Tensor &addInto(at::Tensor &self, const at::Tensor &other) {
  if (self.is_contiguous() && other.is_contiguous() &&
      self.sizes() == other.sizes())
    sumSlices(self, other, /*accumulate=*/true);
  else
    self.add_(other);
  return self;
}

} // namespace

std::vector<int64_t> Draw::list(int64_t key) const {
  const uint64_t philox = mix(mix(seed) + static_cast<uint64_t>(microBatch));
  const uint64_t stream = static_cast<uint64_t>(call) << 32 |
                          static_cast<uint64_t>(key & 0xffffffff);
  return {static_cast<int64_t>(philox), static_cast<int64_t>(stream)};
}

namespace {
struct Less {
  bool operator()(c10::Device a, c10::Device b) const {
    return std::pair(a.type(), a.index()) < std::pair(b.type(), b.index());
  }
};
} // namespace

uint64_t deviceSeed(at::IntArrayRef key) {
  TORCH_CHECK(key.size() == 2 || key.size() == 4,
              "dropout draws by two integers, or by four, but got ",
              key.size());
  const uint64_t seed =
      mix(static_cast<uint64_t>(key[0]) ^ mix(static_cast<uint64_t>(key[1])));
  if (key.size() == 2)
    return seed;
  return mix(seed ^ mix(static_cast<uint64_t>(key[2]) + 1));
}

at::Tensor dropoutByGenerator(const at::Tensor &self, double p,
                              at::IntArrayRef key) {
  // A generator of our own: nothing else sees it, and none is made each call.
  static std::map<c10::Device, at::Generator, Less> generators;
  at::Generator &generator = generators[self.device()];
  if (!generator.defined())
    generator = at::globalContext().defaultGenerator(self.device()).clone();
  generator.set_current_seed(deviceSeed(key));
  // Not by _fused_dropout: what it draws depends on how the tensor is aligned,
  // and a backward must draw as its forward did.
  at::Tensor mask = at::empty(self.sizes(), self.options().dtype(at::kBool));
  mask.bernoulli_(1 - p, generator);
  return at::native_dropout_backward(self.contiguous(), mask,
                                     p < 1 ? 1 / (1 - p) : 0);
}

void registerOperators() {
  // Never taken back: other threads may run at the end.
  static const auto *library = [] {
    auto *made = new torch::Library(torch::Library::FRAGMENT, "accel",
                                    std::nullopt, __FILE__, __LINE__);
    made->def("dropout(Tensor self, float p, int[] key) -> Tensor");
    made->impl(
        "dropout",
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, &dropout));
    made->def("add_(Tensor(a!) self, Tensor other) -> Tensor(a!)");
    made->impl(
        "add_",
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, &addInto));
    defineDroppedAttention(*made);
    return made;
  }();
  static_cast<void>(library);
}

} // namespace accel::run
