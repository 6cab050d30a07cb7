//===- VerifySchedule.cpp - Is this schedule safe? --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Runs each program symbolically, with the bytes in the types: what
// `plan::verify` and `plan::simulate` do on the struct, on edited text.
//
//===----------------------------------------------------------------------===//

#include "dialects/Schedule/Schedule.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace accel {
#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;

namespace accel {
namespace {

using namespace schedule;

/// Facts about the whole module.
struct ModuleFacts {
  /// Bytes of each unit's buffers, and who said so first.
  DenseMap<std::pair<Attribute, int>, std::pair<int64_t, Location>> bytes;
  /// The stream of each kind of collective over each group.
  DenseMap<std::pair<StringRef, Attribute>, std::pair<Stream, Location>>
      streams;
};

class ProgramChecker {
public:
  ProgramChecker(ProgramOp program, ModuleFacts &facts)
      : program(program), facts(facts) {}
  LogicalResult run();

private:
  enum class State { Live, Given, Freed };
  struct Buffer { // of a unit
    StringAttr unit;
    Role role = Role::Gathered;
    State state = State::Live;
    bool filled = false; // gathered into
    Stream seenBy = Stream::Compute;
    Operation *endedBy = nullptr;
  };
  struct Activation {
    Value root;
    bool live = true;
    Operation *endedBy = nullptr;
  };

  InFlightDiagnostic error(Operation *op) {
    failed = true;
    return op->emitOpError();
  }
  int64_t bytesOf(Value value) {
    return cast<BufferType>(value.getType()).getBytes();
  }
  std::string describe(const Buffer &buffer) {
    return ("the " + stringifyRole(buffer.role) + " buffer of unit '" +
            buffer.unit.getValue() + "'")
        .str();
  }
  void define(Operation *op, Value value, StringAttr unit, Role role,
              bool filled, Stream seenBy);
  /// The buffer if `op` may use it; complains otherwise.
  Buffer *use(Operation *op, Value value, Stream stream, const Twine &verb);
  Buffer *use(Operation *op, Value value, Stream stream, const Twine &verb,
              StringAttr unit, Role role);
  void give(Operation *op, Value value);
  Activation *useActivation(Operation *op, Value value, const Twine &verb);
  void dropActivation(Operation *op, Activation &activation);

  void start(Operation *op, StringRef kind, Stream stream, ArrayAttr axes,
             TypedValue<InflightType> inflight, ValueRange buffers);
  void visit(Operation *op);
  void free(FreeOp op);
  void await(AwaitOp op);
  void call(CallOp op);
  void finish(ReturnOp op);
  void save(SaveStartOp op);
  void fetch(FetchStartOp op);
  void awaitFetch(AwaitFetchOp op);

  ProgramOp program;
  ModuleFacts &facts;
  llvm::MapVector<Value, Buffer> buffers;
  llvm::DenseSet<std::pair<Attribute, int>> present; // unit and role
  llvm::MapVector<Value, Activation> activations;
  DenseMap<Value, int> handles; // live activations on a root
  int64_t live = 0, ownPeak = 0, totalPeak = 0, peakInstruction = -1;
  bool failed = false;
};

void ProgramChecker::define(Operation *op, Value value, StringAttr unit,
                            Role role, bool filled, Stream seenBy) {
  auto [known, first] = facts.bytes.try_emplace({unit, static_cast<int>(role)},
                                                bytesOf(value), value.getLoc());
  if (!first && known->second.first != bytesOf(value)) {
    InFlightDiagnostic diagnostic = error(op);
    diagnostic << "says that the " << stringifyRole(role) << " buffer of unit '"
               << unit.getValue() << "' has " << bytesOf(value)
               << " bytes, elsewhere it has " << known->second.first;
    diagnostic.attachNote(known->second.second) << "here";
  }
  buffers[value] = {unit, role, State::Live, filled, seenBy, nullptr};
  present.insert({unit, static_cast<int>(role)});
}

ProgramChecker::Buffer *ProgramChecker::use(Operation *op, Value value,
                                            Stream stream, const Twine &verb) {
  auto found = buffers.find(value);
  if (found == buffers.end()) {
    error(op) << verb << " something that is no unit's buffer";
    return nullptr;
  }
  Buffer &buffer = found->second;
  if (buffer.state != State::Live) {
    InFlightDiagnostic diagnostic = error(op);
    diagnostic << verb << " " << describe(buffer)
               << (buffer.state == State::Freed
                       ? ", which is freed"
                       : ", which was given to a collective and comes back "
                         "only from its await");
    diagnostic.attachNote(buffer.endedBy->getLoc())
        << (buffer.state == State::Freed ? "freed here" : "given here");
    return nullptr;
  }
  if (buffer.seenBy != Stream::Compute && buffer.seenBy != stream) {
    error(op) << verb << " " << describe(buffer) << " on stream "
              << stringifyStream(stream) << ", it was awaited on stream "
              << stringifyStream(buffer.seenBy);
    return nullptr;
  }
  return &buffer;
}

ProgramChecker::Buffer *ProgramChecker::use(Operation *op, Value value,
                                            Stream stream, const Twine &verb,
                                            StringAttr unit, Role role) {
  Buffer *buffer = use(op, value, stream, verb);
  if (buffer && (buffer->unit != unit || buffer->role != role)) {
    error(op) << verb << " " << describe(*buffer) << ", expected the "
              << stringifyRole(role) << " buffer of unit '" << unit.getValue()
              << "'";
    return nullptr;
  }
  return buffer;
}

void ProgramChecker::give(Operation *op, Value value) {
  if (auto found = buffers.find(value); found != buffers.end()) {
    found->second.state = State::Given;
    found->second.endedBy = op;
  }
}

ProgramChecker::Activation *
ProgramChecker::useActivation(Operation *op, Value value, const Twine &verb) {
  auto found = activations.find(value);
  if (found == activations.end())
    return nullptr;
  if (!found->second.live) {
    InFlightDiagnostic diagnostic = error(op);
    diagnostic << verb << " a value that is gone";
    diagnostic.attachNote(found->second.endedBy->getLoc()) << "given up here";
    return nullptr;
  }
  return &found->second;
}

void ProgramChecker::dropActivation(Operation *op, Activation &activation) {
  activation.live = false;
  activation.endedBy = op;
  if (--handles[activation.root] == 0)
    live -= bytesOf(activation.root);
}

void ProgramChecker::start(Operation *op, StringRef kind, Stream stream,
                           ArrayAttr axes, TypedValue<InflightType> inflight,
                           ValueRange given) {
  for (Value value : given)
    give(op, value);
  if (inflight.use_empty())
    error(op) << "is never awaited";
  // Ranks agree on an order of collectives within a stream only.
  auto [known, first] =
      facts.streams.try_emplace({kind, axes}, stream, op->getLoc());
  if (!first && known->second.first != stream) {
    InFlightDiagnostic diagnostic = error(op);
    diagnostic << "runs on stream " << stringifyStream(stream)
               << ", elsewhere this collective over the same axes runs on "
               << stringifyStream(known->second.first)
               << ": their order would differ between ranks";
    diagnostic.attachNote(known->second.second) << "here";
  }
}

void ProgramChecker::await(AwaitOp op) {
  Operation *start = op.getInflight().getDefiningOp();
  for (Operation *user : op.getInflight().getUsers())
    if (user != op && user->isBeforeInBlock(op)) {
      InFlightDiagnostic diagnostic = error(op);
      diagnostic << "awaits a collective for the second time";
      diagnostic.attachNote(user->getLoc()) << "awaited here";
      return;
    }
  SmallVector<Value> given;
  TypeSwitch<Operation *>(start)
      .Case([&](AllGatherStartOp s) { given = {s.getBuffer()}; })
      .Case([&](AllReduceStartOp s) {
        given = {s.getShard()};
        if (s.getReceive())
          given.push_back(s.getReceive());
      })
      .Case([&](OffloadStartOp s) { given = {s.getShard()}; })
      .Case([&](ReduceScatterStartOp s) {
        given = {s.getGradient(), s.getShard()};
        if (s.getReceive())
          given.push_back(s.getReceive());
      });
  for (auto [before, after] : llvm::zip(given, op.getBuffers())) {
    auto found = buffers.find(before);
    if (found == buffers.end())
      continue;
    Buffer buffer = found->second;
    define(op, after, buffer.unit, buffer.role,
           buffer.filled || isa<AllGatherStartOp>(start), op.getStream());
  }
}

void ProgramChecker::free(FreeOp op) {
  for (Value value : op.getBuffers()) {
    if (activations.contains(value)) {
      if (Activation *activation = useActivation(op, value, "frees"))
        dropActivation(op, *activation);
      continue;
    }
    Buffer *buffer = use(op, value, op.getStream(), "frees");
    if (!buffer)
      continue;
    buffer->state = State::Freed;
    buffer->endedBy = op;
    present.erase({buffer->unit, static_cast<int>(buffer->role)});
    live -= bytesOf(value);
  }
}

void ProgramChecker::call(CallOp op) {
  auto names = [](ArrayAttr refs, StringAttr unit) {
    return llvm::any_of(refs, [&](Attribute ref) {
      if (auto param = dyn_cast<ParamAttr>(ref))
        return param.getUnit() == unit.getValue();
      return cast<GradientAttr>(ref).getUnit() == unit.getValue();
    });
  };
  for (Value value : op.getInputs())
    useActivation(op, value, "reads");
  for (Value value : op.getReads()) {
    Buffer *buffer = use(op, value, op.getStream(), "reads");
    if (!buffer)
      continue;
    if (buffer->role != Role::Gathered || !names(op.getParams(), buffer->unit))
      error(op) << "reads " << describe(*buffer)
                << ", which holds none of its parameters";
    else if (!buffer->filled)
      error(op) << "reads " << describe(*buffer)
                << ", which nothing was gathered into";
  }
  for (Value value : op.getWrites()) {
    Buffer *buffer = use(op, value, op.getStream(), "writes");
    if (buffer && ((buffer->role != Role::Gradient &&
                    buffer->role != Role::ShardGradient) ||
                   !names(op.getGradients(), buffer->unit)))
      error(op) << "writes " << describe(*buffer)
                << ", which holds none of its gradients";
  }
  for (auto gradient : op.getGradients().getAsRange<GradientAttr>())
    if (llvm::none_of(op.getWrites(), [&](Value value) {
          auto found = buffers.find(value);
          return found != buffers.end() &&
                 found->second.unit.getValue() == gradient.getUnit();
        }))
      error(op) << "has no buffer for the gradient of '" << gradient.getFqn()
                << "'";

  ownPeak = std::max<int64_t>(ownPeak, live + op.getOwnPeak());
  const int64_t total = live + op.getPeak();
  if (total > totalPeak) {
    totalPeak = total;
    peakInstruction = std::distance(op->getBlock()->begin(), op->getIterator());
  }
  // Outputs first: a view of an input keeps its storage.
  for (int64_t position : op.getConsumes())
    if (auto found = activations.find(op.getInputs()[position]);
        found != activations.end() && found->second.live) {
      found->second.live = false;
      found->second.endedBy = op;
    }
  const int64_t numInputs = op.getInputs().size();
  SmallVector<std::pair<Value, Value>> made;
  for (auto [i, value] : llvm::enumerate(op.getOutputs())) {
    int64_t alias = op.getAliases().empty() ? -1 : op.getAliases()[i];
    Value root = alias < 0            ? value
                 : alias >= numInputs ? op.getOutputs()[alias - numInputs]
                                      : op.getInputs()[alias];
    if (auto found = activations.find(root); found != activations.end())
      root = found->second.root;
    made.emplace_back(value, root);
  }
  for (auto [value, root] : made) {
    activations[value] = {root, true, nullptr};
    if (handles[root]++ == 0 && root == value)
      live += bytesOf(root);
  }
  llvm::DenseSet<Value> dropped;
  for (int64_t position : op.getConsumes()) {
    Value value = op.getInputs()[position];
    auto found = activations.find(value);
    if (found == activations.end() || found->second.endedBy != op ||
        !dropped.insert(value).second)
      continue;
    if (--handles[found->second.root] == 0)
      live -= bytesOf(found->second.root);
  }
}

void ProgramChecker::finish(ReturnOp op) {
  for (Value value : op.getKept())
    use(op, value, Stream::Compute, "keeps");
  for (auto &[value, buffer] : buffers)
    if (buffer.state == State::Live &&
        !llvm::is_contained(op.getKept(), value)) {
      InFlightDiagnostic diagnostic = error(op);
      diagnostic << "leaves " << describe(buffer) << " neither freed nor kept";
      diagnostic.attachNote(value.getLoc()) << "it comes from here";
    }
  if (op.getLoss())
    useActivation(op, op.getLoss(), "returns as the loss");
  if (op.getPredictions())
    useActivation(op, op.getPredictions(), "returns as the predictions");
  for (auto &[value, activation] : activations)
    if (activation.live && !isa<BlockArgument>(value) &&
        value != op.getLoss() && value != op.getPredictions()) {
      InFlightDiagnostic diagnostic = error(op);
      diagnostic << "leaves a value that is never freed";
      diagnostic.attachNote(value.getLoc()) << "it is made here";
    }
}

/// The await of what `inflight` copies to the host.
static AwaitSendOp awaitOfCopy(Value inflight) {
  for (Operation *user : inflight.getUsers())
    if (auto await = dyn_cast<AwaitSendOp>(user))
      return await;
  return {};
}

void ProgramChecker::save(SaveStartOp op) {
  llvm::DenseSet<Value> storages;
  for (auto [value, bytes] :
       llvm::zip(op.getValues(), op.getInflight().getType().getBytes())) {
    Activation *activation = useActivation(op, value, "copies");
    if (!activation)
      continue;
    const int64_t expected = storages.insert(activation->root).second
                                 ? bytesOf(activation->root)
                                 : 0;
    if (bytes != expected)
      error(op) << "copies " << bytes << " bytes of a value, its storage has "
                << expected;
  }
  if (!awaitOfCopy(op.getInflight()))
    error(op) << "is never awaited";
}

void ProgramChecker::fetch(FetchStartOp op) {
  AwaitSendOp copied = awaitOfCopy(op.getSaved());
  if (copied && !copied->isBeforeInBlock(op))
    error(op) << "fetches before the copy to the host is awaited";
  if (op.getInflight().use_empty())
    error(op) << "is never awaited";
  for (int64_t bytes : op.getInflight().getType().getBytes())
    live += bytes;
}

void ProgramChecker::awaitFetch(AwaitFetchOp op) {
  if (!op.getInflight().hasOneUse())
    error(op) << "awaits a copy for the second time";
  auto start = op.getInflight().getDefiningOp<FetchStartOp>();
  DenseMap<Value, Value> owners; // by the storage that was saved
  for (auto [saved, value] :
       llvm::zip(start.getSave().getValues(), op.getValues())) {
    auto before = activations.find(saved);
    if (before == activations.end())
      continue;
    const Value root =
        owners.try_emplace(before->second.root, value).first->second;
    activations[value] = {root, true, nullptr};
    ++handles[root];
  }
}

void ProgramChecker::visit(Operation *at) {
  TypeSwitch<Operation *>(at)
      .Case([&](AllocOp op) {
        if (present.contains(
                {op.getUnitAttr(), static_cast<int>(op.getRole())}))
          error(op) << "allocates the " << stringifyRole(op.getRole())
                    << " buffer of unit '" << op.getUnit()
                    << "', which is allocated already";
        live += bytesOf(op.getBuffer());
        define(op, op.getBuffer(), op.getUnitAttr(), op.getRole(),
               /*filled=*/false, op.getStream());
      })
      .Case([&](FreeOp op) { free(op); })
      .Case([&](AllGatherStartOp op) {
        use(op, op.getBuffer(), op.getStream(), "gathers into",
            op.getUnitAttr(), Role::Gathered);
        start(op, "all_gather", op.getStream(), op.getAxes(), op.getInflight(),
              op.getBuffer());
      })
      .Case([&](ReduceScatterStartOp op) {
        use(op, op.getGradient(), op.getStream(), "reduces", op.getUnitAttr(),
            Role::Gradient);
        use(op, op.getShard(), op.getStream(), "reduces into", op.getUnitAttr(),
            Role::ShardGradient);
        SmallVector<Value> given = {op.getGradient(), op.getShard()};
        if (op.getReceive()) {
          use(op, op.getReceive(), op.getStream(), "receives into",
              op.getUnitAttr(), Role::Receive);
          given.push_back(op.getReceive());
        }
        start(op, "reduce_scatter", op.getStream(), op.getAxes(),
              op.getInflight(), given);
      })
      .Case([&](AllReduceStartOp op) {
        use(op, op.getShard(), op.getStream(), "reduces", op.getUnitAttr(),
            Role::ShardGradient);
        SmallVector<Value> given = {op.getShard()};
        if (op.getReceive()) {
          use(op, op.getReceive(), op.getStream(), "reduces in",
              op.getUnitAttr(), Role::Receive);
          given.push_back(op.getReceive());
        }
        start(op, "all_reduce", op.getStream(), op.getAxes(), op.getInflight(),
              given);
      })
      .Case([&](AwaitOp op) { await(op); })
      .Case([&](CallOp op) { call(op); })
      .Case([&](SendStartOp op) {
        useActivation(op, op.getValue(), "sends");
        if (op.getInflight().use_empty())
          error(op) << "is never awaited";
      })
      .Case([&](HandOverOp op) {
        useActivation(op, op.getValue(), "hands over");
      })
      .Case([&](AwaitSendOp op) {
        for (Value value : op.getValues())
          useActivation(op, value, "has sent");
        Operation *start = op.getInflight().getDefiningOp();
        if (!isa<SendStartOp, SaveStartOp>(start) ||
            !llvm::equal(start->getOperands(), op.getValues()))
          error(op) << "awaits another message than that of its value";
      })
      .Case([&](SaveStartOp op) { save(op); })
      .Case([&](FetchStartOp op) { fetch(op); })
      .Case([&](AwaitFetchOp op) { awaitFetch(op); })
      .Case([&](ReceiveOp op) {
        activations[op.getValue()] = {op.getValue(), true, nullptr};
        handles[op.getValue()] = 1;
        live += bytesOf(op.getValue());
      })
      .Case([](PauseOp) {})
      .Case([&](GradNormOp op) {
        for (Value value : op.getShards()) {
          Buffer *buffer = use(op, value, op.getStream(), "takes the norm of");
          if (buffer && buffer->role != Role::ShardGradient)
            error(op) << "takes the norm of " << describe(*buffer);
        }
      })
      .Case([&](OffloadStartOp op) {
        use(op, op.getShard(), op.getStream(), "copies", op.getUnitAttr(),
            Role::ShardGradient);
        give(op, op.getShard());
        if (op.getInflight().use_empty())
          error(op) << "is never awaited";
      })
      .Case([&](OptimizerStepOp op) {
        use(op, op.getShard(), op.getStream(), "updates from", op.getUnitAttr(),
            Role::ShardGradient);
      })
      .Case([](HostStepOp) {})
      .Case([&](ReturnOp op) { finish(op); })
      .Default([&](Operation *op) {
        error(op) << "is no instruction of a program";
      });
  ownPeak = std::max(ownPeak, live);
  if (live > totalPeak) {
    totalPeak = live;
    peakInstruction = std::distance(at->getBlock()->begin(), at->getIterator());
  }
}

LogicalResult ProgramChecker::run() {
  Block &body = program.getBody().front();
  const size_t numInputs = program.getInputs().size();
  live = program.getPersistentBytes();
  for (BlockArgument argument : body.getArguments()) {
    live += bytesOf(argument);
    if (argument.getArgNumber() < numInputs) {
      activations[argument] = {argument, true, nullptr};
      handles[argument] = 1;
      continue;
    }
    auto carried = cast<CarriedAttr>(
        program.getCarried()[argument.getArgNumber() - numInputs]);
    define(program, argument,
           StringAttr::get(program.getContext(), carried.getUnit()),
           carried.getRole(), /*filled=*/true, Stream::Compute);
  }
  ownPeak = totalPeak = live;
  for (Operation &op : body)
    visit(&op);
  if (failed)
    return failure();
  if (ownPeak != static_cast<int64_t>(program.getPeakBytes()) ||
      peakInstruction != static_cast<int64_t>(program.getPeakInstruction()))
    return program.emitOpError("records a peak of ")
           << program.getPeakBytes() << " bytes at instruction "
           << static_cast<int64_t>(program.getPeakInstruction())
           << ", its timeline has " << ownPeak << " at instruction "
           << peakInstruction;
  return success();
}

struct VerifySchedulePass
    : accel::impl::VerifySchedulePassBase<VerifySchedulePass> {
  void runOnOperation() override {
    ModuleFacts facts;
    bool failed = false;
    for (auto program : getOperation().getOps<ProgramOp>())
      failed |= mlir::failed(ProgramChecker(program, facts).run());
    if (failed)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace accel
