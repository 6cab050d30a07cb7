//===- Accesses.cpp - What operators read and write -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// torch's observers see each operator that is called with its arguments. Its
// tensors are the reads of the launches inside it; what its schema marks with
// `(a!)`, and its results, are the writes. A result is seen only after the
// launches, and counts as written by the last of them.
//
//===----------------------------------------------------------------------===//
#include "test/dry/Dropped.h"
#include "test/dry/DryGpu.h"
#include "test/dry/Values.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace accel::dry {

namespace {

struct Range {
  uintptr_t begin, end;
  std::string what;
};

struct Call {
  std::string text;
  c10::OperatorName name{"", ""};
  // The outermost operator that is no composite of others: what is computed.
  // Nodes of autograd's engine and composites may be around it, and save its
  // results.
  bool outermost = false;
  /// Of that one, and of operators whose result's size depends on values.
  std::vector<c10::IValue> arguments;
  std::vector<Range> reads, writes;
  int launches = 0;
  Actor stream = host;
};

thread_local std::vector<Call> calls;
const std::string none;

template <typename Visit>
void forTensors(const c10::IValue &value, Visit &&visit) {
  if (value.isTensor())
    visit(value.toTensor());
  else if (value.isTensorList())
    for (const at::Tensor &t : value.toTensorVector())
      visit(t);
  else if (value.isOptionalTensorList())
    for (auto &&t : value.toOptionalTensorVector())
      if (t)
        visit(*t);
}

bool rangeOf(const at::Tensor &t, Range &range) {
  if (!t.defined() || !t.is_cuda() || !t.has_storage() || t.numel() == 0)
    return false;
  int64_t extent = 1;
  for (int64_t d = 0; d < t.dim(); ++d)
    extent += (t.size(d) - 1) * t.stride(d);
  const auto base = reinterpret_cast<uintptr_t>(t.storage().data());
  if (!base)
    return false;
  range.begin = base + t.storage_offset() * t.itemsize();
  range.end = range.begin + extent * t.itemsize();
  return true;
}

bool isComposite(const c10::OperatorName &name) {
  auto handle = c10::Dispatcher::singleton().findSchema(name);
  return handle &&
         handle->hasKernelForDispatchKey(
             c10::DispatchKey::CompositeImplicitAutograd) &&
         !handle->hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

/// Of all tensors.
template <typename List> bool haveValues(const List &values) {
  bool all = true;
  for (const c10::IValue &value : values)
    forTensors(value, [&](const at::Tensor &t) {
      all &= !t.defined() || computesValues(t.nbytes());
    });
  return all;
}

void addRanges(const at::RecordFunction &function, Call &call) {
  auto schema = function.operator_schema();
  auto inputs = function.inputs();
  if (schema)
    call.name = schema->operator_name();
  const auto outer =
      std::find_if(calls.begin(), calls.end(),
                   [](const Call &outer) { return outer.outermost; });
  call.outermost = schema && computesValues(1) && haveValues(inputs) &&
                   outer == calls.end() && !isComposite(call.name);
  if (schema && outer != calls.end() && isDroppedAttention(outer->name)) {
    // The state that its kernel reads is made by operators inside.
    call.outermost = call.name.name == "aten::fill_";
    if (std::string problem = stateProblem(
            call.name, std::vector<c10::IValue>(inputs.begin(), inputs.end()),
            outer->arguments.back());
        !problem.empty()) {
      Lock lock(DryGpu::get().mutex);
      DryGpu::get().warn(problem);
    }
  }
  if (call.outermost || sizeDependsOnValues(call.name))
    call.arguments.assign(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const c10::AliasInfo *alias = schema && i < schema->arguments().size()
                                      ? schema->arguments()[i].alias_info()
                                      : nullptr;
    const bool writes = alias && alias->isWrite();
    forTensors(inputs[i], [&](const at::Tensor &t) {
      Range range;
      if (!rangeOf(t, range))
        return;
      range.what = call.text + " argument " + std::to_string(i);
      (writes ? call.writes : call.reads).push_back(range);
    });
  }
}

/// Tensors of Python's own classes (DTensor) have no memory: what their class
/// makes of an operator is called with plain ones, and seen then.
bool isOfPython(const at::RecordFunction &function) {
  bool found = false;
  for (const c10::IValue &input : function.inputs())
    forTensors(input, [&](const at::Tensor &t) {
      found |= t.defined() && t.key_set().has(c10::DispatchKey::Python);
    });
  return found;
}
struct OfPython : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &function) {
  if (Unobserved::active())
    return nullptr;
  if (function.scope() == at::RecordScope::FUNCTION && isOfPython(function))
    return std::make_unique<OfPython>();
  DryGpu &gpu = DryGpu::get();
  if (function.scope() == at::RecordScope::USER_SCOPE) {
    Lock lock(gpu.mutex);
    gpu.beginPlace(function.name());
    return nullptr;
  }
  watchAllocator();
  Call call;
  call.text = function.name();
  try {
    addRanges(function, call);
  } catch (const std::exception &error) {
    Lock lock(gpu.mutex);
    gpu.warn("arguments of " + call.text + ": " + error.what());
  }
  calls.push_back(std::move(call));
  return nullptr;
}

void end(const at::RecordFunction &function, at::ObserverContext *context) {
  if (Unobserved::active() || context)
    return;
  DryGpu &gpu = DryGpu::get();
  if (function.scope() == at::RecordScope::USER_SCOPE) {
    Lock lock(gpu.mutex);
    gpu.endPlace();
    return;
  }
  if (calls.empty())
    return;
  Call call = std::move(calls.back());
  calls.pop_back();
  if (!call.launches)
    return;
  if (!calls.empty()) {
    calls.back().launches += call.launches;
    calls.back().stream = call.stream;
  }
  const std::vector<c10::IValue> &results = function.outputs();
  Lock lock(gpu.mutex);
  for (const c10::IValue &result : results)
    forTensors(result, [&](const at::Tensor &t) {
      Range range;
      if (rangeOf(t, range))
        gpu.order.access(call.stream, range.begin, range.end, true,
                         call.text + " result");
    });
  if (!call.outermost || !haveValues(results))
    return;
  try {
    computeOnHost(call.name, call.arguments, results);
  } catch (const std::exception &error) {
    const std::string text = error.what();
    gpu.warn("not computed: " + call.text + ": " +
             text.substr(0, text.find('\n')));
  }
}

struct Observer {
  Observer() {
    at::addGlobalCallback(
        at::RecordFunctionCallback(begin, end)
            .needsInputs(true)
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
  }
} observer;

/// A line for each tensor that the allocator gives out or takes back: what a
/// prediction of its segments is compared with, by hand.
void noteAllocation(const c10::CachingDeviceAllocator::TraceEntry &entry,
                    Actor on, bool frees) {
  static std::FILE *file = [] {
    const char *path = std::getenv("DRY_ALLOCATIONS");
    const char *rank = std::getenv("RANK");
    return path ? std::fopen(
                      (std::string(path) + "." + (rank ? rank : "0")).c_str(),
                      "w")
                : nullptr;
  }();
  if (file)
    std::fprintf(file, "%s %zx %zu stream %d %s | %s | %s\n",
                 frees ? "free" : "make", static_cast<size_t>(entry.addr_),
                 static_cast<size_t>(entry.size_), static_cast<int>(on),
                 DryGpu::get().place().c_str(),
                 calls.empty() ? "" : calls.front().text.c_str(),
                 currentOperator().c_str());
}

constexpr const char *freeText = "free", *allocationText = "allocation";

/// A block is free to be written by whatever its own stream does next: a
/// stream that is not ordered before that must be done with it. Its bytes are
/// no numbers from then on, nor before its next owner has written them.
void allocated(const c10::CachingDeviceAllocator::TraceEntry &entry) {
  using Entry = c10::CachingDeviceAllocator::TraceEntry;
  const bool frees = entry.action_ == Entry::FREE_COMPLETED;
  if (!frees && entry.action_ != Entry::ALLOC)
    return;
  DryGpu &gpu = DryGpu::get();
  Lock lock(gpu.mutex);
  const auto stream = reinterpret_cast<cudaStream_t>(entry.stream_);
  const Actor on = gpu.actor(stream);
  noteAllocation(entry, on, frees);
  gpu.order.enqueue(on);
  const uint64_t begin = entry.addr_, end = begin + entry.size_;
  // Workspaces of megabytes, one for each matmul, are never written.
  if (computesValues())
    for (const auto &[from, to] :
         gpu.order.writtenOtherwise(begin, end, {freeText, allocationText}))
      std::memset(reinterpret_cast<void *>(from), 0xff, to - from);
  gpu.order.access(on, begin, end, true, frees ? freeText : allocationText);
}

} // namespace

/// The most bytes of a tensor with values.
static size_t bytesWithValues() {
  static const size_t bytes = [] {
    const char *text = std::getenv("DRY_COMPUTE");
    if (!text)
      return size_t{0};
    return std::string(text) == "small" ? size_t{1} << 20 : SIZE_MAX;
  }();
  return bytes;
}

bool computesValues() { return bytesWithValues() == SIZE_MAX; }
bool computesValues(size_t bytes) { return bytes <= bytesWithValues(); }

const std::string &currentOperator() {
  return calls.empty() ? none : calls.back().text;
}

std::optional<int64_t> countForHost() {
  const auto call =
      std::find_if(calls.rbegin(), calls.rend(), [](const Call &call) {
        return sizeDependsOnValues(call.name);
      });
  if (call == calls.rend() || call->arguments.empty())
    return std::nullopt;
  // A mask that is expanded has the values of what it expands.
  const at::Tensor values = call->arguments[0].toTensor();
  if (!computesValues(values.storage().nbytes()))
    return std::nullopt;
  return resultSize(call->name, call->arguments);
}

void attachAccesses(Actor stream) {
  if (calls.empty())
    return;
  Call &call = calls.back();
  ++call.launches;
  call.stream = stream;
  DryGpu &gpu = DryGpu::get();
  for (const Range &range : call.reads)
    gpu.order.access(stream, range.begin, range.end, false, range.what);
  for (const Range &range : call.writes)
    gpu.order.access(stream, range.begin, range.end, true, range.what);
}

/// The allocator is made when the CUDA module is loaded, long after this.
void watchAllocator() {
  namespace caching = c10::cuda::CUDACachingAllocator;
  static std::atomic<bool> watched{false};
  if (watched.load(std::memory_order_relaxed))
    return;
  auto *allocator = static_cast<std::atomic<caching::CUDAAllocator *> *>(
      dlsym(RTLD_DEFAULT, "_ZN3c104cuda20CUDACachingAllocator9allocatorE"));
  if (!allocator || !allocator->load() || !allocator->load()->initialized())
    return;
  if (!watched.exchange(true))
    allocator->load()->attachAllocatorTraceTracker(allocated);
}

} // namespace accel::dry
