//===- AccelRunStep.cpp - accel-run ---------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Receives what StepIssuer issues, in the order in which lower-to-schedule
// writes it, so that its peak is runtime/plan/Timeline's.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepRun.h"
#include "passes/Frameworks/Framework.h"
#include "passes/Schedule/IssueStep.h"
#include "passes/Segments/InnerBytes.h"
#include "passes/Simulate/DriveQueue.h"
#include "runtime/plan/UpdateLayout.h"

#include <optional>

namespace accel {
namespace {

class AccelRunStep : public StepRun {
public:
  using StepRun::StepRun;

  //===--------------------------------------------------------------------===//
  // What StepIssuer calls
  //===--------------------------------------------------------------------===//

  void startGather(int u, int) {
    engine.alloc(Holding::Gathered, flats[u].gathered, gatherPool());
    gather(u, model.device == "cpu"
                  ? engine.clock(Lane::Compute)
                  : std::max(engine.event(freed), flats[u].updated));
  }
  void startRegather(int u, int) { gather(u, engine.clock(Lane::Compute)); }
  void gather(int u, Picoseconds after) {
    const UnitTimes &t = layout.times[u];
    const Picoseconds filled =
        candidate.offloadParameters
            ? engine.run(Lane::HostIn, hostTime(u, candidate.dtypes.compute),
                         after)
            : engine.run(Lane::CopyIn, t.copyIn / 2, after);
    engine.push(engine.transfer(Lane::Gather, Wire::Shard, t.gather, filled,
                                static_cast<double>(flats[u].gathered)));
  }
  void awaitGather(int, int) { engine.wait(engine.pop(), Cause::Gather); }
  void freeGathered(int u, int) {
    engine.free(Holding::Gathered, flats[u].gathered, gatherPool());
    engine.event(freed) = engine.clock(Lane::Compute);
  }
  void allocateGradient(int u, int) {
    engine.alloc(Holding::Gradients,
                 writesShard() ? flats[u].shardGradient : flats[u].gradient);
  }
  void allocateReceive(int u, int) {
    engine.alloc(Holding::Buffers, flats[u].receive);
  }
  void allocateShardGradient(int u, int) {
    engine.alloc(Holding::Gradients, flats[u].shardGradient);
  }
  void startReduce(int u, bool, int) {
    engine.event(reduced) = engine.transfer(
        Lane::Reduce, Wire::Shard, layout.times[u].reduce,
        engine.clock(Lane::Compute), static_cast<double>(flats[u].gradient));
  }
  void awaitReduce(int u, int) {
    engine.wait(engine.event(reduced), Cause::Reduce);
    if (receives())
      engine.free(Holding::Buffers, flats[u].receive);
    engine.compute(layout.times[u].castGradient);
    engine.free(Holding::Gradients, flats[u].gradient);
  }
  void startAllReduce(int u, int) {
    engine.compute(flats[u].castForWire);
    engine.event(allReduced) = engine.transfer(
        Lane::AllReduce, Wire::Replicate,
        casts() ? flats[u].allReduce : layout.times[u].allReduce,
        engine.clock(Lane::Compute),
        static_cast<double>(casts() ? flats[u].receive
                                    : flats[u].shardGradient));
  }
  void awaitAllReduce(int u, int) {
    engine.wait(engine.event(allReduced), Cause::AllReduce);
    if (!casts())
      return;
    engine.compute(flats[u].castForWire);
    engine.free(Holding::Buffers, flats[u].receive);
  }
  void startOffload(int u, int) {
    engine.event(offloaded) =
        engine.run(Lane::HostOut, hostTime(u, candidate.dtypes.storage),
                   engine.clock(Lane::Compute));
    Picoseconds &host = engine.event(onHost);
    host = std::max(host, engine.event(offloaded)) +
           (candidate.disk ? 0 : flats[u].update);
  }
  void awaitOffload(int u, int) {
    engine.wait(engine.event(offloaded), Cause::HostOut);
    engine.free(Holding::Gradients, flats[u].shardGradient);
  }
  void update(int u, int) {
    if (drive)
      return updateFromDrive(u);
    if (candidate.offloadOptimizer) {
      Picoseconds done = engine.event(onHost);
      if (!candidate.offloadParameters)
        done = engine.run(Lane::HostIn, hostTime(u, candidate.dtypes.storage),
                          done);
      engine.wait(done, Cause::HostUpdate);
      return;
    }
    engine.alloc(Holding::Buffers, flats[u].workspace);
    engine.compute(flats[u].update);
    flats[u].updated = engine.clock(Lane::Compute);
    engine.free(Holding::Buffers, flats[u].workspace);
    engine.free(Holding::Gradients, flats[u].shardGradient);
  }
  void norm() {
    if (candidate.offloadOptimizer)
      return; // part of the host's update
    double gradients = 0;
    for (const Flat &flat : flats)
      gradients += static_cast<double>(flat.shardGradient);
    engine.compute(layout.copyTime(3 * gradients));
  }

  /// One after the other, once all gradients are there.
  void updateFromDrive(int u) {
    Picoseconds &host = engine.event(onHost);
    const Picoseconds done =
        toTime(drive->begin(static_cast<double>(host))) + flats[u].update;
    Picoseconds copied = done;
    if (!candidate.offloadParameters)
      copied =
          engine.run(Lane::HostIn, hostTime(u, candidate.dtypes.storage), done);
    host = toTime(
        drive->end(static_cast<double>(done), static_cast<double>(copied)));
    engine.wait(copied, Cause::HostUpdate);
    traceDrive();
  }
  /// What the drive has done since it was last called.
  void traceDrive() {
    if (engine.trace)
      for (const DriveQueue::Transfer &transfer : drive->transfers) {
        const Record &record = records[transfer.record];
        engine.transferred(toTime(transfer.begin), toTime(transfer.end),
                           flats[record.unit].record,
                           (transfer.writes ? "write " : "read ") +
                               record.name);
      }
    drive->transfers.clear();
  }

protected:
  static Picoseconds toTime(double picoseconds) {
    return static_cast<Picoseconds>(picoseconds);
  }

  /// Engine::event; one of each is in flight at most.
  enum Event {
    reduced,
    allReduced,
    offloaded,
    onHost,
    freed,       // gathered parameters, of which nothing is read from then on
    copied,      // what the last call saved
    fetchedNext, // what the next backward reads
    fetchedLater
  };

  /// Flat buffers (Export/BuildSkeleton.cpp).
  struct Flat {
    int64_t padded = 0, shard = 0; // elements
    int64_t gathered = 0, gradient = 0, receive = 0, shardGradient = 0;
    bool trainable = false;
    Picoseconds update = 0;
    Picoseconds allReduce = 0, castForWire = 0; // where a hook casts
    int64_t workspace = 0;                      // of the update
    int64_t record = 0;                         // of its states on the drive
    Picoseconds updated = 0;                    // when it was last
    plan::UpdateShape trained;
  };

  bool sharded() const { return layout.shards.ranks > 1; }
  bool replicated() const { return layout.replicas.ranks > 1; }
  bool readsShard() const {
    return !sharded() && !candidate.offloadParameters &&
           candidate.dtypes.compute == candidate.dtypes.storage;
  }
  /// What is gathered is there between steps.
  bool whole() const { return candidate.wholeParameters && !readsShard(); }
  bool writesShard() const {
    return !sharded() && candidate.dtypes.reduce == candidate.dtypes.storage;
  }
  /// Gradients are all-reduced in another dtype.
  bool casts() const {
    return !sharded() && replicated() && !candidate.commHook.empty();
  }
  bool receives() const { return sharded() && model.device == "cpu"; }
  bool updatesInline() const {
    return !candidate.clipGradients && !candidate.offloadOptimizer;
  }
  /// Of a unit's shard in this dtype, between host and device.
  Picoseconds hostTime(int u, plan::DType dtype) const {
    return layout.hostTime(static_cast<double>(bytes(flats[u].shard, dtype)));
  }

  int reachForward() const override {
    return candidate.forwardPrefetch + (candidate.offloadSaved ? 2 : 1);
  }
  int reachBackward() const override {
    return candidate.backwardPrefetch + (candidate.offloadSaved ? 2 : 1);
  }
  /// Equal blocks are not where only some wait for their reductions, or for
  /// their gathers.
  bool foldsBackward() const override {
    auto alike = [&](int64_t waits) {
      return waits == 0 || waits >= candidate.numUnits();
    };
    return alike(candidate.awaitReductions) && alike(candidate.holdGathers);
  }
  /// Gradients are written into flat buffers.
  bool gradientsStay() const override { return true; }

  void allocatePersistent() override {
    const StepDtypes &r = candidate.dtypes;
    const int64_t smallest =
        std::min({plan::itemSize(r.storage), plan::itemSize(r.compute),
                  plan::itemSize(r.reduce)});
    const int64_t align = plan::alignmentBytes / smallest;
    flats.assign(layout.units.size(), Flat());
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      Flat &flat = flats[candidate.unitOf[p]];
      flat.padded += (model.parameters[p].numel() + align - 1) / align * align;
      flat.trainable |= model.parameters[p].trainable;
      if (model.parameters[p].trainable && !candidate.update->isFlat())
        flat.trained.parameters.push_back({model.parameters[p].shape});
    }
    for (Flat &flat : flats) {
      const int64_t chunk = 64 * layout.shards.ranks;
      flat.padded = (flat.padded + chunk - 1) / chunk * chunk;
      flat.shard = flat.padded / layout.shards.ranks;
      flat.gathered = bytes(flat.padded, r.compute);
      flat.gradient = bytes(flat.padded, r.reduce);
      flat.receive = bytes(flat.padded - flat.shard, r.reduce);
      flat.shardGradient = bytes(flat.shard, r.storage);
      if (casts()) {
        flat.receive = bytes(flat.shard, plan::DType::BF16); // as fp16
        flat.castForWire = layout.copyTime(
            static_cast<double>(flat.shardGradient + flat.receive));
        flat.allReduce = toPicoseconds(collectiveSeconds(
            layout.target, Collective::AllReduce, layout.replicas,
            static_cast<double>(flat.receive)));
      }
      const int64_t shard = bytes(flat.shard, r.storage);
      if (whole())
        engine.alloc(Holding::Gathered, flat.gathered);
      if (!candidate.offloadParameters)
        engine.alloc(Holding::Parameters, shard);
      else if (r.compute != r.storage)
        hostBytes += bytes(flat.shard, r.compute);
      if ((candidate.offloadParameters ||
           (candidate.offloadOptimizer && flat.trainable)) &&
          !shardOnDrive(flat))
        hostBytes += shard;
      if (!flat.trainable)
        continue;
      updateFlat(flat);
    }
    if (model.device != "cpu" &&
        frameworks::keepsWorkspaces(candidate.torchVersion))
      engine.alloc(Holding::Buffers, gemmWorkspace(layout.target.capability));
    countBuffers();
    listUses();
    if (model.device != "cpu")
      beginBehindUpdates();
  }
  /// The step before has updated units in the order in which they are gathered:
  /// the first gather begins beside the updates of the others (TimeModel's
  /// StepEnd). Where units are updated beside the backward the first one is the
  /// last, and a host that updates comes to the gathers when it is done.
  void beginBehindUpdates() {
    if (updatesInline() || candidate.offloadOptimizer ||
        candidate.stages() > 1 || uses->gathers.empty())
      return;
    Picoseconds all = 0;
    for (int u : uses->asRead)
      if (flats[u].trainable)
        flats[u].updated = all += flats[u].update;
    const Picoseconds first = flats[uses->gathers.front().unit].updated;
    for (Flat &flat : flats)
      flat.updated = std::max<Picoseconds>(0, flat.updated - first);
    engine.beginLater(all - first);
  }
  /// Gathers have memory of their own on a device with streams (memoryOf).
  Pool gatherPool() const {
    return model.device == "cpu" ? Pool::Compute : Pool::Gather;
  }
  /// As plan::shardOnDisk.
  bool shardOnDrive(const Flat &flat) const {
    return candidate.disk && flat.trainable &&
           (!candidate.offloadParameters ||
            candidate.dtypes.compute != candidate.dtypes.storage);
  }
  /// Of the host, between the drive and updates.
  void countBuffers() {
    int64_t records = 0, largest = 0;
    for (const Flat &flat : flats) {
      records += flat.record > 0;
      largest = std::max(largest, flat.record);
      diskBytes += flat.record;
    }
    if (candidate.disk)
      hostBytes += std::min(candidate.disk->buffers, records) * largest;
  }
  void updateFlat(Flat &flat) {
    const StepDtypes &r = candidate.dtypes;
    const plan::OptimizerRule &rule = *candidate.update;
    int64_t states = 0;
    if (!rule.isFlat()) {
      flat.trained.shard = flat.shard;
      flat.trained.ranks = layout.shards.ranks;
      flat.trained.storage = r.storage;
      for (const plan::StateLayout &state :
           plan::stateLayouts(rule, flat.trained))
        states += bytes(state.elements, state.dtype);
      const plan::UpdateWork work =
          plan::updateWork(rule, flat.trained, model.device);
      flat.workspace = work.workspaceBytes;
      flat.update = layout.copyTime(work.movedBytes);
      if (work.flops > 0)
        flat.update +=
            toPicoseconds(work.flops / layout.target.flops(plan::DType::BF16));
      for (const plan::UpdateExchange &exchange : work.exchanges)
        flat.update += toPicoseconds(collectiveSeconds(
            layout.target,
            exchange.sums ? Collective::AllReduce : Collective::AllToAll,
            layout.shards, exchange.bytes));
    } else {
      for (const plan::StateRule &state : rule.states)
        states +=
            bytes(flat.shard, plan::OptimizerRule::dtypeOf(state, r.state));
      const auto parameters = static_cast<double>(bytes(flat.shard, r.storage));
      const plan::UpdateCost cost = rule.ownCost(model.device);
      flat.update =
          layout.copyTime((cost.parameters + cost.gradients) * parameters +
                          cost.states * static_cast<double>(states));
    }
    if (!candidate.offloadOptimizer) {
      engine.alloc(Holding::Optimizer, states);
      return;
    }
    hostBytes += flat.shardGradient;
    if (candidate.disk) {
      constexpr int64_t a = plan::diskAlignment;
      const int64_t held =
          states + (shardOnDrive(flat) ? bytes(flat.shard, r.storage) : 0);
      flat.record = (held + a - 1) / a * a;
    } else {
      hostBytes += states;
    }
    flat.update = hostUpdate(flat, states);
  }
  /// The host's update; of a job that clips, with norm and scaling.
  Picoseconds hostUpdate(const Flat &flat, int64_t states) const {
    const plan::UpdateCost cost;
    const auto gradients = static_cast<double>(flat.shardGradient);
    const double moved =
        cost.parameters * gradients +
        (cost.gradients + (candidate.clipGradients ? 3 : 0)) * gradients +
        cost.states * static_cast<double>(states);
    const double rate = layout.target.host.updateBytesPerSecond;
    return rate > 0 ? toPicoseconds(moved / rate) : 0;
  }
  int64_t bytes(int64_t numel, plan::DType dtype) const {
    return plan::alignedBytes(numel * plan::itemSize(dtype));
  }

  /// A chunked loss is computed by its backward alone.
  bool fused(int call) const {
    return layout.kind(call).loss && layout.variant(call).forwardOps == 0;
  }

  void listUses() {
    uses.emplace(static_cast<int>(flats.size()));
    for (size_t u = 0; u < flats.size(); ++u) {
      schedule::StepUses::Unit &unit = uses->units[u];
      unit.gathered = !readsShard();
      unit.whole = whole();
      unit.reshardAfterForward = candidate.reshardAfterForward[u];
      unit.writesShard = writesShard();
      unit.receives = receives();
      unit.replicated = replicated();
      unit.casts = casts();
    }
    std::vector<int> reads, backwardReads, gradients;
    for (size_t c = 0; c < model.calls.size(); ++c) {
      const int call = static_cast<int>(c);
      const SegmentKind &kind = layout.kind(call);
      const std::vector<bool> &again = layout.variant(call).backwardReads;
      for (auto *list : {&reads, &backwardReads, &gradients})
        list->clear();
      const std::vector<int> &parameters = model.calls[c].parameters;
      // Most calls read the parameters of one unit.
      auto add = [](std::vector<int> &list, int u) {
        if (list.empty() || list.back() != u)
          list.push_back(u);
      };
      for (size_t i = 0; i < parameters.size(); ++i) {
        const int u = candidate.unitOf[parameters[i]];
        add(reads, u);
        if (i < again.size() && again[i])
          add(backwardReads, u);
        if (kind.parameterGradientBytes > 0 &&
            model.parameters[parameters[i]].trainable)
          add(gradients, u);
      }
      for (auto *list : {&reads, &backwardReads, &gradients}) {
        if (list->size() < 2)
          continue;
        std::sort(list->begin(), list->end());
        list->erase(std::unique(list->begin(), list->end()), list->end());
      }
      uses->addCall(reads, backwardReads, gradients, !fused(call),
                    kind.parameterGradientBytes > 0 ||
                        kind.inputGradientBytes > 0);
    }
    uses->finish();
    if (candidate.offloadSaved)
      listMoved();
    schedule::IssueOptions options;
    options.forwardPrefetch = candidate.forwardPrefetch;
    options.backwardPrefetch = candidate.backwardPrefetch;
    options.holdGathers = candidate.holdGathers;
    options.awaitReductions = candidate.awaitReductions;
    options.keepUnsharded = !candidate.reduceEachMicroBatch;
    options.updateInline = updatesInline();
    options.hostUpdates = candidate.offloadOptimizer;
    options.clip = candidate.clipGradients;
    issuer.emplace(*uses, options, *this);
  }

  // What calls save, on the host: as the pass offload-activations moves it.
  bool differentiated(int call) const {
    return layout.kind(call).parameterGradientBytes > 0 ||
           layout.kind(call).inputGradientBytes > 0;
  }
  /// At least one call runs without what moves: the next one copies it, and the
  /// one before its backward fetches it.
  void listMoved() {
    moved.assign(model.calls.size(), 0);
    int between = 0;
    for (int c = static_cast<int>(model.calls.size()); c-- > 0;) {
      if (between >= 3 && differentiated(c) && !fused(c)) {
        moved[c] = savedBytes(c);
        for (int value : model.calls[c].inputs)
          if (model.values[value].producer >= 0 &&
              layout.lastReader[value] == c && layout.savedUntil[value] >= 0)
            moved[c] += model.values[value].bytes;
        hostBytes += moved[c];
      }
      between += (fused(c) ? 0 : 1) + (differentiated(c) ? 1 : 0);
    }
  }
  bool moves(int call) const {
    return call >= 0 && !moved.empty() && moved[call] > 0;
  }
  Picoseconds moveTime(int call) const {
    return layout.hostTime(static_cast<double>(moved[call]));
  }
  void leaveSaved(int call) {
    const RecordingPause quiet(engine);
    if (moves(leaving)) {
      engine.wait(engine.event(copied), Cause::HostOut);
      engine.free(Holding::Activations, moved[leaving]);
    }
    leaving = call;
    if (moves(call))
      engine.event(copied) = engine.run(Lane::HostOut, moveTime(call),
                                        engine.clock(Lane::Compute));
  }
  /// Behind the backward of `call`: what the second one after it reads.
  void fetchSaved(int call) {
    int reader = call;
    for (int steps = 0; steps < 2 && reader >= 0;)
      if (--reader >= 0 && differentiated(reader))
        ++steps;
    if (!moves(reader))
      return;
    const RecordingPause quiet(engine);
    engine.alloc(Holding::Activations, moved[reader]);
    engine.event(fetchedLater) =
        engine.run(Lane::HostIn, moveTime(reader), engine.clock(Lane::Compute));
  }
  void awaitSaved(int call) {
    if (moves(call))
      engine.wait(engine.event(fetchedNext), Cause::HostIn);
    engine.event(fetchedNext) = engine.event(fetchedLater);
  }

  void beginForward() override {
    engine.alloc(Holding::Buffers, plan::alignmentBytes); // loss_seed
    issuer->begin(microBatch.first, microBatch.last);
  }
  void beforeForward(const Block &) override {}
  void afterForward(const Block &) override {}
  void beforeBackward(const Block &) override {}
  void afterBackward(const Block &) override {}
  void beforeForwardCall(int call) override {
    if (!fused(call))
      issuer->beforeForward(call);
  }
  void afterForwardCall(int call) override {
    if (fused(call))
      return;
    if (candidate.offloadSaved)
      leaveSaved(call);
    issuer->afterForward(call);
  }
  void endForward() override { issuer->endForward(); }
  void beforeBackwardCall(int call) override {
    issuer->beforeBackward(call);
    if (candidate.offloadSaved)
      awaitSaved(call);
  }
  void gradientsReady(int call) override {
    if (candidate.offloadSaved)
      fetchSaved(call);
    issuer->afterBackward(call);
  }
  void endBackward() override {
    issuer->endBackward();
    engine.free(Holding::Buffers, plan::alignmentBytes);
  }
  void update() override {
    if (candidate.disk)
      startDrive();
    issuer->update();
  }
  /// Records are updated from the last unit to the first.
  void startDrive() {
    const Drive &of = layout.target.drive;
    records.clear();
    std::vector<DriveQueue::Record> times;
    for (size_t u = flats.size(); u-- > 0;)
      if (const int64_t bytes = flats[u].record) {
        records.push_back({u, engine.trace
                                  ? layout.moduleOf(static_cast<int>(u))
                                  : std::string()});
        times.push_back({driveTime(bytes, of.readBytesPerSecond),
                         driveTime(bytes, of.writeBytesPerSecond)});
      }
    drive.emplace(std::move(times), *candidate.disk,
                  std::min(candidate.disk->buffers,
                           static_cast<int64_t>(records.size())));
  }
  static double driveTime(int64_t bytes, double rate) {
    return static_cast<double>(
        toPicoseconds(driveSeconds(static_cast<double>(bytes), rate)));
  }

  std::vector<Flat> flats;
  std::vector<int64_t> moved; // by call: to the host and back
  int leaving = -1;           // the call whose copy is under way
  struct Record {
    size_t unit = 0;
    std::string name;
  };
  std::vector<Record> records;     // by update
  std::optional<DriveQueue> drive; // of this step's updates
  std::optional<schedule::StepUses> uses;
  std::optional<schedule::StepIssuer<AccelRunStep>> issuer;
};

} // namespace

std::unique_ptr<StepRun> makeAccelRunStep(const StepLayout &layout,
                                          Engine &engine) {
  return std::make_unique<AccelRunStep>(layout, engine);
}

} // namespace accel
