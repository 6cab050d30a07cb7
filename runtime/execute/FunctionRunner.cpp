//===- FunctionRunner.cpp - Runs a compute function -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/FunctionRunner.h"

#include "runtime/collectives/Backend.h"
#include "runtime/plan/Deterministic.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/Context.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <c10/core/Scalar.h>

#include <algorithm>
#include <optional>
#include <set>

namespace accel::run {

namespace {

/// The type inside `T?`.
c10::TypePtr strip(const c10::TypePtr &type) {
  if (auto optional = type->cast<c10::OptionalType>())
    return optional->getElementType();
  return type;
}

std::string typeOf(const c10::Argument &formal) {
  return formal.real_type()->str();
}

/// ATen's attention operators declare these as `Tensor` and take an undefined
/// one: no lengths of packed sequences, no dropout, no bias.
bool mayBeUndefined(const c10::Argument &formal) {
  static const std::set<std::string> names = {
      "cum_seq_q", "cum_seq_k", "philox_seed", "philox_offset",
      "attn_bias", "rng_state", "unused"};
  return formal.real_type()->kind() == c10::TypeKind::TensorType &&
         names.count(formal.name()) != 0;
}

/// Whether a tensor has a NaN, or an infinity.
bool holds(const at::Tensor &tensor, bool nan) {
  return tensor.defined() && c10::isFloatingType(tensor.scalar_type()) &&
         (nan ? at::isnan(tensor) : at::isinf(tensor)).any().item<bool>();
}

} // namespace

FunctionRunner::FunctionRunner(const plan::Function &function, Device &device,
                               Groups &groups)
    : function(function), device(device), slots(function.slots.size()) {
  registerOperators();
  calls.reserve(function.instructions.size());
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    try {
      const plan::Instruction &instruction = function.instructions[i];
      calls.push_back(plan::isExchange(instruction)
                          ? prepareExchange(instruction, groups)
                          : prepare(instruction, groups.mesh()));
    } catch (const CollectiveError &) {
      throw; // of another rank
    } catch (const std::exception &error) {
      throw PlanError("function '" + function.name + "', instruction " +
                      std::to_string(i) + " (" + function.instructions[i].op +
                      "): " + plainMessage(error));
    }
  }
  stack.reserve(32);
}

c10::IValue FunctionRunner::constant(const plan::Arg &arg,
                                     const c10::Argument &formal) const {
  using Kind = plan::Arg::Kind;
  const c10::TypePtr type = strip(formal.real_type());
  const bool isFloat = type->kind() == c10::TypeKind::FloatType;
  auto mismatch = [&](const char *given) {
    return PlanError(std::string("argument '") + formal.name() + "' is " +
                     typeOf(formal) + ", and the plan gives " + given);
  };
  switch (arg.kind) {
  case Kind::None:
    if (mayBeUndefined(formal))
      return at::Tensor();
    if (formal.real_type()->kind() != c10::TypeKind::OptionalType)
      throw mismatch("nothing");
    // Operators that make tensors make them on the plan's device.
    if (type->kind() == c10::TypeKind::DeviceObjType)
      return device.device();
    return c10::IValue();
  case Kind::Int:
    if (isFloat)
      return static_cast<double>(arg.intValue);
    if (type->kind() == c10::TypeKind::BoolType)
      return arg.intValue != 0;
    if (type->isSubtypeOf(*c10::TensorType::get()))
      throw mismatch("an integer");
    return arg.intValue;
  case Kind::Float:
    if (!isFloat && type->kind() != c10::TypeKind::NumberType)
      throw mismatch("a floating-point number");
    return arg.floatValue;
  case Kind::Bool:
    if (type->kind() != c10::TypeKind::BoolType &&
        type->kind() != c10::TypeKind::NumberType)
      throw mismatch("a truth value");
    return arg.intValue != 0;
  case Kind::Ints: {
    if (type->kind() != c10::TypeKind::ListType)
      throw mismatch("a list of integers");
    if (type->castRaw<c10::ListType>()->getElementType()->kind() ==
        c10::TypeKind::FloatType)
      return std::vector<double>(arg.ints.begin(), arg.ints.end());
    return arg.ints;
  }
  case Kind::Bools: {
    if (type->kind() != c10::TypeKind::ListType)
      throw mismatch("a list of truth values");
    c10::List<bool> list;
    for (int64_t value : arg.ints)
      list.push_back(value != 0);
    return list;
  }
  case Kind::Type:
    return static_cast<int64_t>(scalarType(arg.dtype));
  case Kind::Wrapped: {
    if (!type->isSubtypeOf(*c10::TensorType::get()))
      throw mismatch("a number as a tensor");
    at::Tensor number = hostScalar(arg.floatValue, c10::ScalarType::Double);
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    return number;
  }
  case Kind::Key:
    if (type->kind() != c10::TypeKind::ListType ||
        type->castRaw<c10::ListType>()->getElementType()->kind() !=
            c10::TypeKind::IntType)
      throw mismatch("the key of a random operator");
    return c10::IValue();
  case Kind::Text:
    if (type->kind() != c10::TypeKind::StringType)
      throw mismatch("a string");
    return arg.text;
  case Kind::Tensor:
    if (!type->isSubtypeOf(*c10::TensorType::get()))
      throw mismatch("a tensor");
    return c10::IValue();
  case Kind::Tensors:
    if (type->kind() != c10::TypeKind::ListType)
      throw mismatch("a list of tensors");
    return c10::IValue();
  }
  throw mismatch("an argument of unknown kind");
}

FunctionRunner::Call
FunctionRunner::prepare(const plan::Instruction &instruction,
                        const Mesh &mesh) const {
  const bool isOpaque = instruction.kind == plan::Instruction::Kind::Opaque;
  std::vector<plan::Arg> args = instruction.args;
  std::optional<OpaqueBackward> backward;
  if (isOpaque)
    backward = takeBackward(args);
  const size_t colon = instruction.op.find("::");
  const size_t dot =
      instruction.op.find('.', colon == std::string::npos ? 0 : colon + 2);
  const std::string name = instruction.op.substr(0, dot);
  const std::string overload =
      dot == std::string::npos ? "" : instruction.op.substr(dot + 1);
  auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle)
    throw PlanError("this LibTorch has no such operator");
  Call call{*handle,
            {},
            {},
            {},
            {},
            instruction.results,
            instruction.frees,
            0,
            isOpaque,
            std::move(backward),
            nullptr,
            -1,
            false,
            {},
            {},
            {}};
  if (device.device().is_cpu())
    call.indexCheck = indexCheckOf(name);
  const c10::FunctionSchema &schema = handle->schema();
  if (const plan::Bits bits = plan::bitsOnCuda(instruction, function.slots);
      bits != plan::Bits::Same && !device.device().is_cpu() &&
      at::globalContext().deterministicAlgorithms())
    throw PlanError(
        std::string("does not give the same bits each time; ") +
        (bits == plan::Bits::Vary
             ? "a plan of a job with 'deterministic: true' takes another kernel"
             : "CUDA has no other kernel for it"));
  if (std::string problem = isOpaque ? opaqueProblem(schema) : "";
      !problem.empty())
    throw PlanError("cannot be an opaque operator: " + problem);
  const auto &formals = schema.arguments();
  if (args.size() > formals.size())
    throw PlanError("takes " + std::to_string(formals.size()) +
                    " arguments, and the plan gives " +
                    std::to_string(args.size()));
  for (size_t i = 0; i < formals.size(); ++i) {
    if (i >= args.size()) {
      if (!formals[i].default_value())
        throw PlanError("argument '" + formals[i].name() + "' is missing");
      call.arguments.push_back(*formals[i].default_value());
      continue;
    }
    const plan::Arg &arg = args[i];
    call.arguments.push_back(constant(arg, formals[i]));
    if (arg.kind == plan::Arg::Kind::Tensor) {
      call.fills.push_back({static_cast<int>(i), arg.slot});
      if (formals[i].alias_info() && formals[i].alias_info()->isWrite())
        call.written.push_back(arg.slot);
    } else if (arg.kind == plan::Arg::Kind::Key) {
      Key &key =
          call.keys.emplace_back(Key{static_cast<int>(i), arg.intValue, {}});
      if (!arg.axes.empty())
        key.place = {mesh.position(arg.axes), mesh.size(arg.axes)};
    } else if (arg.kind == plan::Arg::Kind::Tensors) {
      auto list = strip(formals[i].real_type())->cast<c10::ListType>();
      call.lists.push_back(
          {static_cast<int>(i),
           {arg.ints.begin(), arg.ints.end()},
           list->getElementType()->kind() == c10::TypeKind::OptionalType});
    }
  }
  // An in-place or `out=` operator returns what it wrote: that is dropped.
  call.numReturns =
      call.backward ? call.backward->wanted.size() : schema.returns().size();
  if (static_cast<int>(call.results.size()) > call.numReturns)
    throw PlanError("has " + std::to_string(call.numReturns) +
                    " results, and the plan takes " +
                    std::to_string(call.results.size()));
  return call;
}

FunctionRunner::Call
FunctionRunner::prepareExchange(const plan::Instruction &instruction,
                                Groups &groups) {
  std::optional<plan::Exchange> exchange = plan::exchangeOf(instruction);
  if (!exchange)
    throw PlanError("its arguments are not those of the exchange");
  if (exchange->kind == plan::ExchangeKind::Await) {
    Call call = prepareAwait(*exchange);
    call.frees = instruction.frees;
    return call;
  }
  const bool inPlace =
      exchange->value >= 0 && function.slots[exchange->result].base ==
                                  function.slots[exchange->value].base;
  Call call;
  call.results = instruction.results;
  call.frees = instruction.frees;
  if (exchange->started) {
    call.started = starts++;
    for (int slot : exchange->buffers)
      call.bufferSizes.push_back(function.slots[slot].shape.front());
  }
  call.exchange = std::make_shared<ExchangeCall>(std::move(*exchange), inPlace,
                                                 groups, device.device());
  return call;
}

/// Of the exchange before it whose result it names.
FunctionRunner::Call
FunctionRunner::prepareAwait(const plan::Exchange &await) const {
  for (const Call &start : calls) {
    if (start.started < 0 || start.awaits || start.results[0] != await.result)
      continue;
    Call call;
    call.exchange = start.exchange;
    call.started = start.started;
    call.awaits = true;
    call.made = start.results;
    return call;
  }
  throw PlanError("it awaits what no exchange before it has started");
}

void FunctionRunner::fail(size_t instruction, const std::exception &error) {
  const plan::Instruction &at = function.instructions[instruction];
  throw PlanError("function '" + function.name + "', instruction " +
                  std::to_string(instruction) + " (" + at.op +
                  (at.where.empty() ? "" : " of " + at.where) +
                  "): " + plainMessage(error));
}

void FunctionRunner::run(const std::vector<at::Tensor> &params,
                         const std::vector<at::Tensor> &gradients,
                         OwnPeak &peak, const Draw &draw,
                         std::string *notFinite) {
  for (size_t i = 0; i < params.size(); ++i)
    slots[function.params[i]] = params[i];
  for (size_t i = 0; i < gradients.size(); ++i)
    slots[function.gradients[i]] = gradients[i];
  if (notFinite && notFinite->empty())
    *notFinite = problemOfArguments();
  if (observer)
    observer->begin(function);
  for (size_t index = 0; index < calls.size(); ++index) {
    Call &call = calls[index];
    stack.assign(call.arguments.begin(), call.arguments.end());
    for (const Fill &fill : call.fills)
      stack[fill.argument] = slots[fill.slot];
    for (const Key &key : call.keys) {
      std::vector<int64_t> list = draw.list(key.key);
      list.insert(list.end(), key.place.begin(), key.place.end());
      stack[key.argument] = std::move(list);
    }
    for (const FillList &fill : call.lists) {
      if (fill.optional) {
        c10::List<std::optional<at::Tensor>> list;
        for (int slot : fill.slots)
          list.push_back(slot < 0 ? std::nullopt
                                  : std::make_optional(slots[slot]));
        stack[fill.argument] = std::move(list);
      } else {
        std::vector<at::Tensor> list;
        for (int slot : fill.slots)
          list.push_back(slots[slot]);
        stack[fill.argument] = std::move(list);
      }
    }
    try {
      callOne(call);
    } catch (const CollectiveError &) {
      throw; // of another rank
    } catch (const RowsError &) {
      throw; // of the data, not of the plan
    } catch (const std::exception &error) {
      fail(index, error);
    }
    for (size_t i = 0; i < call.results.size(); ++i)
      if (call.results[i] >= 0)
        slots[call.results[i]] = std::move(stack[i]).toTensor();
    stack.clear();
    if (notFinite && notFinite->empty())
      *notFinite = problemOf(index);
    peak.sample(device);
    for (int slot : call.frees)
      slots[slot].reset();
    if (observer)
      observer->end(function, index);
  }
}

/// What is not finite before the first operator is not its result. Inputs may
/// be masks, which hold infinities.
std::string FunctionRunner::problemOfArguments() const {
  for (size_t i = 0; i < function.params.size(); ++i)
    for (bool nan : {true, false})
      if (holds(slots[function.params[i]], nan))
        return "parameter '" + function.paramNames[i] + "' of '" +
               function.name + "' holds " + (nan ? "nan" : "inf");
  for (size_t i = 0; i < function.inputs.size(); ++i)
    if (holds(slots[function.inputs[i]], true))
      return "input " + std::to_string(i) + " of '" + function.name +
             "' holds nan";
  return "";
}

/// Infinities that an operator was given are not its own: masks hold them.
std::string FunctionRunner::problemOf(size_t index) const {
  const Call &call = calls[index];
  if (call.started >= 0 && !call.awaits)
    return ""; // nothing is there yet
  auto has = [&](int slot, bool nan) {
    return slot >= 0 && holds(slots[slot], nan);
  };
  auto any = [&](bool nan) {
    if (call.awaits)
      return has(call.made.front(), nan);
    auto hasOne = [&](int slot) { return has(slot, nan); };
    return std::any_of(call.results.begin(), call.results.end(), hasOne) ||
           std::any_of(call.written.begin(), call.written.end(), hasOne);
  };
  // What a written argument was given is gone.
  auto isGiven = [&](const Fill &fill) {
    return std::find(call.written.begin(), call.written.end(), fill.slot) ==
               call.written.end() &&
           has(fill.slot, false);
  };
  const bool nan = any(true);
  if (!nan && (!any(false) ||
               std::any_of(call.fills.begin(), call.fills.end(), isGiven)))
    return "";
  const plan::Instruction &at = function.instructions[index];
  return at.op + (at.where.empty() ? "" : " of " + at.where) +
         ", instruction " + std::to_string(index) + " of '" + function.name +
         "', gives " + (nan ? "nan" : "inf");
}

void FunctionRunner::callExchange(Call &call) {
  if (call.awaits)
    return await(call);
  if (call.started >= 0)
    return start(call);
  // Collectives of one group have one order, on whatever stream they are.
  if (underWay >= 0 && call.exchange->description().communicates())
    device.awaitExchange(underWay);
  const int slot = call.exchange->slot();
  stack.push_back(
      call.exchange->run(slot < 0 ? at::Tensor() : slots[slot], endsOf(call)));
}

at::Tensor FunctionRunner::endsOf(const Call &call) {
  const int slot = call.exchange->endsSlot();
  return slot < 0 ? at::Tensor() : device.hostCopies.of(slots[slot]);
}

void FunctionRunner::start(Call &call) {
  std::vector<at::Tensor> made = call.exchange->start(
      slots[call.exchange->slot()], call.bufferSizes,
      [&](const std::function<void()> &collective) {
        device.enterExchange();
        collective();
        device.leaveExchange(call.started);
      },
      endsOf(call));
  underWay = call.started;
  for (at::Tensor &each : made)
    stack.push_back(std::move(each));
}

void FunctionRunner::await(Call &call) {
  std::vector<at::Tensor> made;
  for (int slot : call.made)
    made.push_back(slots[slot]);
  device.awaitExchange(call.started);
  if (underWay == call.started)
    underWay = -1;
  call.exchange->finish(slots[call.exchange->slot()], made);
}

void FunctionRunner::callOne(Call &call) {
  if (call.exchange)
    return callExchange(call);
  if (call.indexCheck)
    call.indexCheck(stack);
  if (!call.isOpaque)
    return call.op->callBoxed(stack);
  if (call.backward) {
    std::vector<at::Tensor> gradients;
    for (int slot : call.backward->gradients)
      gradients.push_back(slots[slot]);
    std::vector<at::Tensor> results =
        callBackward(*call.op, stack, call.backward->wanted, gradients);
    stack.assign(results.begin(), results.end());
  } else {
    callOpaque(*call.op, stack);
  }
  // Nobody has derived what these operators return: what the plan counted on
  // is checked.
  for (size_t i = 0; i < call.results.size(); ++i) {
    if (call.results[i] < 0)
      continue;
    const plan::Slot &slot = function.slots[call.results[i]];
    const at::Tensor &result = stack[i].toTensor();
    if (!result.defined() || result.scalar_type() != scalarType(slot.dtype) ||
        result.sizes() != c10::IntArrayRef(slot.shape))
      throw PlanError("result " + std::to_string(i) +
                      " is not of the type that the plan says");
  }
}

void FunctionRunner::clear() {
  for (at::Tensor &slot : slots)
    slot.reset();
}

} // namespace accel::run
