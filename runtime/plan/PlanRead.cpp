//===- PlanRead.cpp - Reading plan.json -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The counterpart of PlanJson.cpp. Nothing is guessed: unknown keys, kinds and
// versions, numbers out of range and a hash that does not fit are refused, and
// what is read is verified.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/JsonNesting.h"
#include "runtime/plan/Optimizers.h"
#include "runtime/plan/PlanJson.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/plan/Sha256.h"
#include "runtime/plan/Verify.h"

#include <algorithm>
#include <optional>

namespace accel::plan {

using nlohmann::json;

int PlanReader::lookup(const Index &index, const Node &node,
                       const char *what) const {
  auto found = index.find(node.string());
  if (found == index.end())
    node.fail(std::string("there is no ") + what + " '" + node.string() + "'");
  return found->second;
}

DType PlanReader::dtype(const Node &node) const {
  std::optional<DType> result = parseDType(node.string());
  if (!result)
    node.fail("unknown dtype '" + node.string() + "'");
  return *result;
}

/// ["f32", [2, 512]], with a slot number behind it for a view.
void PlanReader::type(const Node &node, DType &dtype,
                      std::vector<int64_t> &shape, int *base) const {
  size_t at = 0;
  node.items([&](const Node &item) {
    if (at == 0)
      dtype = this->dtype(item);
    else if (at == 1)
      shape = this->shape(item);
    else if (at == 2 && base)
      *base = item.integer(0, maxInt);
    else
      item.fail("unexpected item");
    ++at;
  });
  if (at < 2)
    node.fail("expected [dtype, shape]");
}

void PlanReader::data(const Node &node, Data &data) {
  Fields fields(node);
  fields.optional("kind", [&](const Node &n) { data.kind = n.string(); });
  static const char *kinds[] = {"", "tokens", "text", "npy", "arrays"};
  if (std::find(std::begin(kinds), std::end(kinds), data.kind) ==
      std::end(kinds))
    node.fail("unknown kind of data '" + data.kind + "'");
  fields.optional("path", [&](const Node &n) { data.path = n.string(); });
  fields.optional("arrays", [&](const Node &n) {
    if (!n.value.is_object())
      n.fail("expected an object, not " + n.shown());
    for (const auto &[name, path] : n.value.items())
      data.arrays[name] = Node(path, &n, name.c_str()).string();
  });
  fields.optional("dtype", [&](const Node &n) { data.dtype = n.string(); });
  fields.optional("shuffle",
                  [&](const Node &n) { data.shuffle = n.boolean(); });
  fields.optional("seed",
                  [&](const Node &n) { data.seed = n.integer(0, INT64_MAX); });
  fields.close();
}

/// The values of a hyperparameter, of its kind and in its range.
static std::vector<double> hyperparameter(const Node &node,
                                          const Hyperparameter &parameter) {
  std::vector<double> numbers;
  const auto number = [&](const Node &n) {
    const double value = n.real(parameter.least);
    if (value >= parameter.below)
      n.fail(n.shown() + " is not less than " + json(parameter.below).dump());
    numbers.push_back(value);
  };
  switch (parameter.kind) {
  case Hyperparameter::Kind::Number:
    number(node);
    break;
  case Hyperparameter::Kind::Numbers:
    node.items(number);
    if (numbers.size() != parameter.standard.size())
      node.fail("expected " + std::to_string(parameter.standard.size()) +
                " numbers");
    break;
  case Hyperparameter::Kind::Flag:
    numbers = {node.boolean() ? 1.0 : 0.0};
    break;
  }
  return numbers;
}

void PlanReader::job(const Node &node) {
  Job &job = plan.job;
  Fields fields(node);
  {
    Node at = fields["model"];
    Fields model(at);
    job.modelName = model["name"].string();
    job.modelPath = model["path"].string();
    model.optional("weights",
                   [&](const Node &n) { job.weightFiles = n.strings(); });
    model.optional("archive", [&](const Node &n) { job.archive = n.string(); });
    model.optional("adapter_config",
                   [&](const Node &n) { job.adapterConfig = n.string(); });
    model.close();
  }
  job.seed = fields["seed"].integer(0, INT64_MAX);
  fields.optional("random_seed", [&](const Node &n) {
    job.randomSeed = n.integer(0, INT64_MAX);
  });
  {
    Node at = fields["precision"];
    job.precision = at.string();
    if (job.precision != "no" && job.precision != "bf16" &&
        job.precision != "fp16")
      at.fail("unknown precision '" + job.precision + "'");
  }
  fields.optional("loss_scaling",
                  [&](const Node &n) { job.lossScaling = n.boolean(); });
  job.microBatch = fields["micro_batch"].integer(1, maxInt);
  job.sequenceLength = fields["sequence_length"].integer(0, maxInt);
  job.vocab = fields["vocab"].integer(0, maxInt);
  fields.optional("input_limits", [&](const Node &n) {
    if (!n.value.is_object())
      n.fail("expected an object, not " + n.shown());
    for (const auto &[name, limit] : n.value.items())
      job.inputLimits.push_back(
          {name, Node(limit, &n, name.c_str()).integer(1, maxInt)});
  });
  job.accumulation = fields["gradient_accumulation_steps"].integer(1, maxInt);
  {
    Node at = fields["optimizer"];
    Fields optimizer(at);
    Node name = optimizer["name"];
    job.optimizer.name = name.string();
    const OptimizerDescription *description = findOptimizer(name.string());
    if (!description)
      name.fail("unknown optimizer '" + job.optimizer.name + "'");
    for (const Hyperparameter &parameter : description->hyperparameters)
      setValue(job.optimizer, parameter.name,
               hyperparameter(optimizer[parameter.name], parameter));
    if (const char *conflict = description->conflict
                                   ? description->conflict(job.optimizer)
                                   : nullptr)
      at.fail(conflict);
    job.optimizer.maxGradNorm = optimizer["max_grad_norm"].real(0);
    optimizer["groups"].items([&](const Node &n) {
      Fields group(n);
      OptimizerGroup &into = job.optimizer.groups.emplace_back();
      into.lr = group["lr"].real(0);
      into.weightDecay = group["weight_decay"].real(0);
      group.close();
    });
    optimizer.close();
  }
  {
    Node at = fields["schedule"];
    Fields schedule(at);
    job.schedule.steps = schedule["steps"].integer(0, INT64_MAX);
    job.schedule.warmupSteps = schedule["warmup_steps"].integer(0, INT64_MAX);
    Node decay = schedule["decay"];
    job.schedule.decay = decay.string();
    if (job.schedule.decay != "constant" && job.schedule.decay != "linear" &&
        job.schedule.decay != "cosine")
      decay.fail("unknown decay '" + job.schedule.decay + "'");
    job.schedule.minLr = schedule["min_lr"].real(0);
    schedule.close();
  }
  data(fields["data"], job.data);
  {
    Node at = fields["eval"];
    Fields eval(at);
    job.evalEvery = eval["every"].integer(0, INT64_MAX);
    job.evalBatches = eval["batches"].integer(0, INT64_MAX);
    data(eval["data"], job.evalData);
    eval.close();
  }
  {
    Node at = fields["checkpoint"];
    Fields checkpoint(at);
    job.checkpoint.dir = checkpoint["dir"].string();
    job.checkpoint.every = checkpoint["every"].integer(0, INT64_MAX);
    job.checkpoint.keep = checkpoint["keep"].integer(0, INT64_MAX);
    Node kind = checkpoint["state_dict"];
    job.checkpoint.stateDict = kind.string();
    if (job.checkpoint.stateDict != "sharded" &&
        job.checkpoint.stateDict != "full")
      kind.fail("unknown state dict '" + job.checkpoint.stateDict + "'");
    checkpoint.close();
  }
  fields.close();
}

void PlanReader::mesh(const Node &node) {
  Fields fields(node);
  Node axes = fields["axes"];
  int64_t ranks = 1;
  named(axes, plan.axes, nullptr, [&](const Node &n, Axis &axis) {
    Fields each(n);
    axis.name = each["name"].string();
    axis.size = each["size"].integer(1, maxInt);
    each.close();
    ranks *= axis.size; // at most 2^31 before, 2^31 each
    if (ranks > maxInt)
      axes.fail("more than " + std::to_string(maxInt) + " ranks");
    return axis.name;
  });
  fields.close();
}

/// One class today: all ranks run the same programs.
void PlanReader::rankClasses(const Node &node) {
  size_t count = 0;
  node.items([&](const Node &n) {
    Fields fields(n);
    Node ranks = fields["ranks"];
    if (count++ ||
        ranks.integers(0, maxInt) != std::vector<int64_t>{0, plan.ranks()})
      ranks.fail("expected one class of all " + std::to_string(plan.ranks()) +
                 " ranks");
    Node names = fields["programs"];
    std::vector<std::string> expected;
    for (const Program &program : plan.programs)
      expected.push_back(program.name);
    if (names.strings() != expected)
      names.fail("expected the names of all programs in their order");
    fields.close();
  });
  if (count == 0)
    node.fail("expected one class of ranks");
}

static void readInitializer(const Node &node, Initializer &init) {
  using Kind = Initializer::Kind;
  Fields fields(node);
  auto number = [&](const char *name, double &into) {
    bool found = false;
    fields.optional(name, [&](const Node &n) {
      into = n.real();
      found = true;
    });
    return found;
  };
  int kinds = 0;
  for (auto [name, kind] : {std::pair("normal", Kind::Normal),
                            {"truncated_normal", Kind::TruncatedNormal},
                            {"constant", Kind::Constant},
                            {"sinusoids", Kind::Sinusoids}})
    if (number(name, init.value)) {
      init.kind = kind;
      ++kinds;
    }
  fields.optional("uniform", [&](const Node &n) {
    if (!n.boolean())
      n.fail("expected true");
    init.kind = Kind::Uniform;
    ++kinds;
  });
  if (kinds != 1)
    node.fail("expected one of normal, truncated_normal, uniform, constant and "
              "sinusoids");
  const bool low = number("low", init.low), high = number("high", init.high);
  const bool ranged =
      init.kind == Kind::TruncatedNormal || init.kind == Kind::Uniform;
  if (low != ranged || high != ranged)
    node.fail(ranged ? "expected low and high" : "expected no low or high");
  fields.optional("zero_row",
                  [&](const Node &n) { init.zeroRow = n.integer(0, maxSize); });
  fields.close();
}

std::string PlanReader::parameter(const Node &node, Parameter &parameter) {
  Fields fields(node);
  parameter.fqn = fields["fqn"].string();
  fields.optional("aliases",
                  [&](const Node &n) { parameter.aliases = n.strings(); });
  fields.optional("base_names",
                  [&](const Node &n) { parameter.baseNames = n.strings(); });
  fields.optional("adapter_key",
                  [&](const Node &n) { parameter.adapterKey = n.string(); });
  parameter.shape = shape(fields["shape"]);
  fields.optional("stored", [&](const Node &n) {
    parameter.stored = n.strings();
    if (!storedParts(parameter.fqn, parameter.stored, parameter.shape))
      n.fail("these names do not fit the shape of '" + parameter.fqn + "'");
  });
  parameter.dtype = dtype(fields["dtype"]);
  fields.optional("trainable",
                  [&](const Node &n) { parameter.trainable = n.boolean(); });
  fields.optional(
      "group", [&](const Node &n) { parameter.group = n.integer(0, maxInt); });
  parameter.unit = lookup(units, fields["unit"], "unit");
  parameter.offset = fields["offset"].integer(0, maxSize);
  fields.optional("init", [&](const Node &n) {
    if (n.value.is_string()) {
      if (n.string() != "ones")
        n.fail("unknown initial value '" + n.string() + "'");
      parameter.init.kind = Initializer::Kind::Ones;
      return;
    }
    readInitializer(n, parameter.init);
  });
  const Unit &unit = plan.units[parameter.unit];
  Node placements = fields["placements"];
  Fields axes(placements);
  for (const Axis &axis : plan.axes) {
    bool sharded = std::find(unit.shardAxes.begin(), unit.shardAxes.end(),
                             axis.name) != unit.shardAxes.end();
    Node placement = axes[axis.name.c_str()];
    const char *expected = sharded ? "shard" : "replicate";
    if (placement.string() != expected)
      placement.fail("'" + placement.string() + "' does not fit its unit ('" +
                     expected + "')");
  }
  axes.close();
  fields.close();
  return parameter.fqn;
}

std::string PlanReader::unit(const Node &node, Unit &unit) {
  Fields fields(node);
  unit.name = fields["name"].string();
  unit.shardAxes = fields["shard_axes"].strings();
  unit.replicateAxes = fields["replicate_axes"].strings();
  Node types = fields["dtypes"];
  Fields dtypes(types);
  unit.storage = dtype(dtypes["storage"]);
  unit.gather = dtype(dtypes["gather"]);
  unit.reduce = dtype(dtypes["reduce"]);
  if (dtype(dtypes["compute"]) != unit.gather)
    types.fail("a compute dtype other than the gather dtype is not known to "
               "this version");
  if (dtype(dtypes["grad"]) != unit.reduce)
    types.fail("a grad dtype other than the reduce dtype is not known to this "
               "version");
  dtypes.close();
  fields.optional("trainable",
                  [&](const Node &n) { unit.trainable = n.boolean(); });
  fields["states"].items([&](const Node &n) {
    Fields state(n);
    State &into = unit.states.emplace_back();
    into.name = state["name"].string();
    into.dtype = dtype(state["dtype"]);
    state.close();
  });
  unit.numel = fields["numel"].integer(0, maxSize);
  unit.padded = fields["padded"].integer(0, maxSize);
  fields.optional("groups", [&](const Node &n) {
    n.items([&](const Node &item) {
      std::vector<int64_t> range = item.integers(0, maxSize);
      if (range.size() != 3 || range[0] > maxInt)
        item.fail("expected [group, begin, end]");
      unit.groupRanges.push_back(
          {static_cast<int>(range[0]), range[1], range[2]});
    });
  });
  fields.close();
  return unit.name;
}

void PlanReader::predicted(const Node &node) {
  Predicted &p = plan.predicted;
  Fields fields(node);
  Node memoryAt = fields["memory"];
  Fields memory(memoryAt);
  auto bytes = [](const Node &n) { return n.integer(0, INT64_MAX); };
  p.peakBytes = bytes(memory["peak_bytes"]);
  p.ownPeakBytes = bytes(memory["own_peak_bytes"]);
  p.persistentBytes = bytes(memory["persistent_bytes"]);
  p.reservedBytes = bytes(memory["reserved_bytes"]);
  p.deviceBytes = bytes(memory["device_bytes"]);
  Node breakdownAt = memory["breakdown"];
  Fields breakdown(breakdownAt);
  p.breakdown.parameters = bytes(breakdown["parameters"]);
  p.breakdown.gradients = bytes(breakdown["gradients"]);
  p.breakdown.optimizer = bytes(breakdown["optimizer"]);
  p.breakdown.activations = bytes(breakdown["activations"]);
  p.breakdown.logits = bytes(breakdown["logits"]);
  p.breakdown.gathered = bytes(breakdown["gathered"]);
  p.breakdown.buffers = bytes(breakdown["buffers"]);
  breakdown.close();
  p.peakProgram = memory["peak_program"].string();
  p.peakStep = memory["peak_step"].integer(-1, maxInt);
  p.peakWhere = memory["peak_where"].string();
  memory.close();
  Node timeAt = fields["time"];
  if (!timeAt.value.is_null()) {
    Fields time(timeAt);
    p.hasTime = true;
    p.stepSeconds = time["step_s"].real(0);
    p.computeSeconds = time["compute_s"].real(0);
    p.exposedCommSeconds = time["exposed_comm_s"].real(0);
    p.tokensPerSecond = time["tokens_per_s"].real(0);
    time.close();
  }
  fields.close();
}

void PlanReader::decision(const Node &node, Decision &decision) {
  Fields fields(node);
  decision.what = fields["what"].string();
  decision.where = fields["where"].string();
  decision.choice = fields["choice"].string();
  decision.why = fields["why"].string();
  fields.optional("file", [&](const Node &n) { decision.file = n.string(); });
  fields.optional("line",
                  [&](const Node &n) { decision.line = n.integer(0, maxInt); });
  fields.optional(
      "column", [&](const Node &n) { decision.column = n.integer(0, maxInt); });
  fields.optional("alternatives",
                  [&](const Node &n) { decision.alternatives = n.strings(); });
  fields.close();
}

/// A unit's list of parameters is theirs, by offset.
void PlanReader::unitLayouts() {
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    plan.units[plan.parameters[i].unit].parameters.push_back(i);
  for (Unit &unit : plan.units)
    std::stable_sort(
        unit.parameters.begin(), unit.parameters.end(), [&](int a, int b) {
          return plan.parameters[a].offset < plan.parameters[b].offset;
        });
}

void PlanReader::read(const json &document) {
  Node root(document);
  Fields fields(root);
  fields["format"];
  fields["hash"];
  plan.generator = fields["generator"].string();
  plan.target = fields["target"].string();
  Node device = fields["device"];
  plan.device = device.string();
  if (plan.device != "cpu" && plan.device != "cuda")
    device.fail("unknown device '" + plan.device + "'");
  job(fields["job"]);
  mesh(fields["mesh"]);
  named(fields["units"], plan.units, &units,
        [&](const Node &n, Unit &u) { return unit(n, u); });
  named(fields["parameters"], plan.parameters, &parameters,
        [&](const Node &n, Parameter &p) { return parameter(n, p); });
  unitLayouts();
  fields["buffers"].items([&](const Node &n) {
    Fields each(n);
    Buffer &buffer = plan.buffers.emplace_back();
    buffer.fqn = each["fqn"].string();
    buffer.shape = shape(each["shape"]);
    buffer.dtype = dtype(each["dtype"]);
    buffer.persistent = each["persistent"].boolean();
    each.close();
  });
  named(fields["functions"], plan.functions, &functions,
        [&](const Node &n, Function &f) { return function(n, f); });
  named(fields["programs"], plan.programs, &programs,
        [&](const Node &n, Program &p) { return program(n, p); });
  rankClasses(fields["rank_classes"]);
  fields["step"].items([&](const Node &n) {
    Fields each(n);
    int program = lookup(programs, each["program"], "program");
    plan.step.emplace_back(program, each["repeat"].integer(1, maxInt));
    each.close();
  });
  Node eval = fields["eval"];
  if (!eval.value.is_null())
    plan.eval = lookup(programs, eval, "program");
  predicted(fields["predicted"]);
  fields["decisions"].items(
      [&](const Node &n) { decision(n, plan.decisions.emplace_back()); });
  fields.close();
}

namespace {

/// Line and column of a byte.
std::string position(const std::string &text, size_t byte) {
  byte = std::min(byte, text.size());
  size_t line = 1 + std::count(text.begin(), text.begin() + byte, '\n');
  size_t start = byte == 0 ? 0 : text.rfind('\n', byte - 1);
  size_t column =
      start == std::string::npos || byte == 0 ? byte + 1 : byte - start;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

void checkVersion(const json &document) {
  Node root(document);
  Fields fields(root);
  Node format = fields["format"];
  int64_t version = format.integer(0, INT64_MAX);
  if (version != Plan::formatVersion)
    format.fail("version " + std::to_string(version) +
                " is not readable here (this reads version " +
                std::to_string(Plan::formatVersion) +
                "); plan again with the accel-opt that comes with this "
                "accel-run");
}

void checkHash(const std::string &text) {
  static const std::string start = "\n\"hash\": \"sha256:";
  size_t at = text.find(start);
  size_t end = at == std::string::npos ? at : text.find('\n', at + 1);
  if (end == std::string::npos)
    throw JsonError{"hash: the line with the hash is missing; the file was "
                    "edited or reformatted, plan again with accel-opt"};
  Sha256 hash;
  hash.update(std::string_view(text).substr(0, at));
  hash.update(std::string_view(text).substr(end));
  std::string_view written =
      std::string_view(text).substr(at + start.size(), end - at - start.size());
  if (written != hash.hexDigest() + "\",")
    throw JsonError{"hash: the plan does not fit its hash: it was edited by "
                    "hand or damaged; change the configuration and plan again "
                    "with accel-opt"};
}

} // namespace

bool fromJson(const std::string &text, Plan &plan, std::string &error) {
  try {
    if (const size_t at = nestsDeeper(text); at != std::string::npos)
      throw JsonError{"this is not a plan: brackets nest deeper than " +
                      std::to_string(maxJsonNesting) + " levels at " +
                      position(text, at)};
    json document = json::parse(text);
    if (!document.is_object())
      throw JsonError{"this is not a plan: expected a JSON object"};
    checkVersion(document);
    checkHash(text);
    Plan read;
    PlanReader(read).read(document);
    std::vector<std::string> problems = verify(read);
    if (!problems.empty()) {
      error = problems[0];
      if (problems.size() > 1)
        error += " (and " + std::to_string(problems.size() - 1) +
                 (problems.size() == 2 ? " more problem)" : " more problems)");
      return false;
    }
    plan = std::move(read);
    return true;
  } catch (const JsonError &e) {
    error = e.message;
  } catch (const json::parse_error &e) {
    error = text.empty() ? "the file is empty"
            : e.byte > text.size()
                ? "not valid JSON: it ends too early, at " +
                      position(text, text.size())
                : "not valid JSON at " +
                      position(text, e.byte == 0 ? 0 : e.byte - 1);
  } catch (const json::exception &e) {
    error = std::string("not readable as JSON: ") + e.what();
  }
  return false;
}

} // namespace accel::plan
