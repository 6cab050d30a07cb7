//===- ReadTarget.cpp - From a YAML document to a target ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Targets/ReadTarget.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace accel {

namespace {

/// Our own format is strict: all keys but the optional ones must be there, and
/// no other may.
class Reader {
public:
  Reader(const yaml::Document &document, DiagnosticEngine &engine)
      : document(document), engine(engine) {}
  std::optional<Target> read();

private:
  using Keys = std::vector<std::string>;

  void error(const yaml::Node *at, const std::string &code,
             const std::string &key, const std::string &message,
             const std::string &hint = "");
  /// Complains unless `node` is a mapping of these keys.
  bool mapping(const yaml::Node *node, const std::string &path,
               const Keys &needed, const Keys &optional);
  /// A mapping below the root that must be there.
  const yaml::Node *section(const char *key, const Keys &needed,
                            const Keys &optional = {});

  std::string text(const yaml::Node *node, const std::string &path);
  double number(const yaml::Node &node, const std::string &path, double least,
                double most);
  int64_t integer(const yaml::Node &node, const std::string &path,
                  int64_t least);
  const yaml::Node *choice(const yaml::Node *node, const std::string &path,
                           const Keys &choices);

  /// The figure `key` of `parent`, {value, source}: gives the node of `value`.
  const yaml::Node *figure(const yaml::Node &parent, const std::string &key,
                           const std::string &path);
  /// Adds to Target::figures.
  void note(const std::string &path, const yaml::Node &value,
            const yaml::Node &group);

  void memory();
  void compute(const yaml::Node &node, const std::string &path,
               ComputeRate &rate);
  void link(const yaml::Node &parent, const char *key, Link &link);
  void host(const yaml::Node &parent);
  void drive(const yaml::Node &parent);
  void measured(const yaml::Node &parent);
  /// Keys of `node` that are figures themselves; the source is the node's.
  double inner(const yaml::Node &node, const std::string &path, const char *key,
               double least, double most, double absent = 0);

  const yaml::Document &document;
  DiagnosticEngine &engine;
  Target target;
  bool failed = false;
};

void Reader::error(const yaml::Node *at, const std::string &code,
                   const std::string &key, const std::string &message,
                   const std::string &hint) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.file = document.file();
  diagnostic.line = at ? at->range.begin.line : 1;
  diagnostic.column = at ? at->range.begin.column : 1;
  if (at && at->isScalar() && at->range.end.line == at->range.begin.line)
    diagnostic.endColumn = at->range.end.column;
  diagnostic.key = key;
  diagnostic.message = message;
  diagnostic.hint = hint;
  engine.report(std::move(diagnostic));
  failed = true;
}

std::string join(const std::string &path, const std::string &key) {
  return path.empty() ? key : path + "." + key;
}

bool Reader::mapping(const yaml::Node *node, const std::string &path,
                     const Keys &needed, const Keys &optional) {
  const std::string shown = path.empty() ? "a target" : "'" + path + "'";
  if (!node || !node->isMapping()) {
    error(node, "invalid-value", path,
          shown + " must be a mapping, not " +
              (node ? yaml::describe(node->kind) : "empty"));
    return false;
  }
  Keys known = needed;
  known.insert(known.end(), optional.begin(), optional.end());
  for (const yaml::Entry &entry : node->entries) {
    const std::string key =
        entry.key->isScalar() ? entry.key->text : yaml::shortText(*entry.key);
    if (std::find(known.begin(), known.end(), key) == known.end())
      error(entry.key, "unknown-key", join(path, printable(key)),
            "unknown key '" + printable(key) + "' in " + shown,
            didYouMean(key, known));
  }
  bool complete = true;
  for (const std::string &key : needed)
    if (!node->find(key)) {
      error(node, "missing-key", join(path, key),
            shown + " needs the key '" + key + "'");
      complete = false;
    }
  return complete;
}

const yaml::Node *Reader::section(const char *key, const Keys &needed,
                                  const Keys &optional) {
  const yaml::Node *node = document.root()->find(key);
  return mapping(node, key, needed, optional) ? node : nullptr;
}

std::string Reader::text(const yaml::Node *node, const std::string &path) {
  if (node->isString() && !node->text.empty())
    return node->text;
  error(node, "invalid-value", path,
        "'" + path + "' must be a text, not " + yaml::shortText(*node));
  return {};
}

double Reader::number(const yaml::Node &node, const std::string &path,
                      double least, double most) {
  double value = std::nan("");
  if (node.kind == yaml::Kind::Int || node.kind == yaml::Kind::Float) {
    value = node.number;
  } else if (node.isString() && node.isPlain()) {
    // YAML 1.1 takes `1e9` for a string.
    const char *end = node.text.data() + node.text.size();
    auto [stop, bad] = std::from_chars(node.text.data(), end, value);
    if (stop != end || bad != std::errc())
      value = std::nan("");
  }
  if (std::isfinite(value) && value >= least && value <= most)
    return value;
  auto shown = [](double bound) {
    char digits[32];
    return std::string(digits, std::to_chars(digits, digits + 32, bound).ptr);
  };
  error(&node, "invalid-value", path,
        "'" + path + "' must be a number from " + shown(least) + " to " +
            shown(most) + ", not " + yaml::shortText(node));
  return least;
}

int64_t Reader::integer(const yaml::Node &node, const std::string &path,
                        int64_t least) {
  // A device has less than 2^50 bytes, a node fewer ranks.
  constexpr int64_t most = int64_t(1) << 50;
  if (node.kind == yaml::Kind::Int && !node.huge && node.integer >= least &&
      node.integer <= most)
    return node.integer;
  error(&node, "invalid-value", path,
        "'" + path + "' must be an integer from " + std::to_string(least) +
            " to " + std::to_string(most) + ", not " + yaml::shortText(node));
  return least;
}

const yaml::Node *Reader::choice(const yaml::Node *node,
                                 const std::string &path, const Keys &choices) {
  if (node->isString() &&
      std::find(choices.begin(), choices.end(), node->text) != choices.end())
    return node;
  std::string list;
  for (const std::string &choice : choices)
    list += (list.empty() ? "'" : " or '") + choice + "'";
  error(node, "invalid-value", path,
        "'" + path + "' must be " + list + ", not " + yaml::shortText(*node),
        node->isString() ? didYouMean(node->text, choices) : "");
  return nullptr;
}

void Reader::note(const std::string &path, const yaml::Node &value,
                  const yaml::Node &group) {
  const yaml::Node *source = group.find("source");
  target.figures.push_back(
      {path, value.text, source ? text(source, path + ".source") : ""});
}

const yaml::Node *Reader::figure(const yaml::Node &parent,
                                 const std::string &key,
                                 const std::string &path) {
  const yaml::Node *node = parent.find(key);
  if (!node || !mapping(node, path, {"value"}, {"source"}))
    return nullptr;
  const yaml::Node *value = node->find("value");
  note(path, *value, *node);
  return value;
}

void Reader::memory() {
  const yaml::Node *node =
      section("memory",
              {"context_bytes", "bandwidth", "bandwidth_efficiency",
               "allocator_overhead", "allocator_granularity"},
              {"bytes", "reduction_efficiency", "half_bytes",
               "library_bandwidth_efficiency"});
  if (!node)
    return;
  auto real = [&](const char *key, double least, double most) {
    const std::string path = std::string("memory.") + key;
    const yaml::Node *value = figure(*node, key, path);
    return value ? number(*value, path + ".value", least, most) : least;
  };
  auto whole = [&](const char *key, int64_t least) {
    const std::string path = std::string("memory.") + key;
    const yaml::Node *value = figure(*node, key, path);
    return value ? integer(*value, path + ".value", least) : least;
  };
  if (node->find("bytes"))
    target.memoryBytes = whole("bytes", 1);
  target.contextBytes = whole("context_bytes", 0);
  const double bandwidth = real("bandwidth", 1, 1e18);
  target.memoryBytesPerSecond =
      bandwidth * real("bandwidth_efficiency", 1e-4, 1);
  if (node->find("reduction_efficiency"))
    target.reductionBytesPerSecond =
        bandwidth * real("reduction_efficiency", 1e-4, 1);
  if (node->find("library_bandwidth_efficiency"))
    target.libraryBytesPerSecond =
        bandwidth * real("library_bandwidth_efficiency", 1e-4, 1);
  if (node->find("half_bytes"))
    target.memoryHalfBytes = real("half_bytes", 0, 1e12);
  target.allocatorOverhead = real("allocator_overhead", 0, 10);
  target.allocatorGranularity = whole("allocator_granularity", 1);
  if (target.memoryBytes && target.contextBytes >= *target.memoryBytes)
    error(node->find("context_bytes"), "invalid-value", "memory.context_bytes",
          "'memory.context_bytes' leaves nothing of 'memory.bytes'");
}

double Reader::inner(const yaml::Node &node, const std::string &path,
                     const char *key, double least, double most,
                     double absent) {
  const yaml::Node *value = node.find(key);
  if (!value)
    return absent;
  note(join(path, key), *value, node);
  return number(*value, join(path, key), least, most);
}

void Reader::compute(const yaml::Node &node, const std::string &path,
                     ComputeRate &rate) {
  if (!mapping(
          &node, path, {"flops", "matmul_efficiency", "attention_efficiency"},
          {"attention_backward_efficiency", "matmul_half_depth",
           "attention_half_length", "attention_half_head",
           "cudnn_attention_efficiency", "cudnn_attention_backward_efficiency",
           "cudnn_attention_half_head", "library_matmul_efficiency", "source"}))
    return;
  rate.peakFlops = inner(node, path, "flops", 1, 1e21);
  rate.matmulEfficiency = inner(node, path, "matmul_efficiency", 1e-4, 1);
  rate.halfDepth = inner(node, path, "matmul_half_depth", 0, 1e6);
  rate.attentionEfficiency = inner(node, path, "attention_efficiency", 1e-4, 1);
  rate.attentionBackwardEfficiency =
      inner(node, path, "attention_backward_efficiency", 1e-4, 1);
  rate.attentionHalfLength = inner(node, path, "attention_half_length", 0, 1e6);
  rate.attentionHalfHead = inner(node, path, "attention_half_head", 0, 1e6);
  rate.cudnnEfficiency =
      inner(node, path, "cudnn_attention_efficiency", 1e-4, 1);
  rate.cudnnBackwardEfficiency =
      inner(node, path, "cudnn_attention_backward_efficiency", 1e-4, 1);
  rate.cudnnHalfHead = inner(node, path, "cudnn_attention_half_head", 0, 1e6);
  rate.libraryMatmulEfficiency =
      inner(node, path, "library_matmul_efficiency", 1e-4, 1);
}

void Reader::link(const yaml::Node &parent, const char *key, Link &link) {
  const std::string path = std::string("links.") + key;
  const yaml::Node *node = parent.find(key);
  if (!mapping(node, path, {"bandwidth", "latency", "hop"},
               {"tree_hop", "short_messages", "switch_reduction", "source"}))
    return;
  link.bytesPerSecond = inner(*node, path, "bandwidth", 1, 1e18);
  link.latencySeconds = inner(*node, path, "latency", 0, 10);
  link.hopSeconds = inner(*node, path, "hop", 0, 10);
  link.treeHopSeconds = inner(*node, path, "tree_hop", 0, 10);
  if (const yaml::Node *sums = node->find("switch_reduction")) {
    const std::string at = join(path, "switch_reduction");
    if (mapping(sums, at, {"efficiency", "latency"}, {"source"})) {
      link.switchReduction.efficiency = inner(*sums, at, "efficiency", 0, 1);
      link.switchReduction.latencySeconds = inner(*sums, at, "latency", 0, 10);
    }
  }
  const yaml::Node *brief = node->find("short_messages");
  const std::string below = join(path, "short_messages");
  if (!brief ||
      !mapping(brief, below, {"bandwidth", "latency", "hop"}, {"source"}))
    return;
  link.shortMessages.bytesPerSecond =
      inner(*brief, below, "bandwidth", 1, 1e18);
  link.shortMessages.latencySeconds = inner(*brief, below, "latency", 0, 10);
  link.shortMessages.hopSeconds = inner(*brief, below, "hop", 0, 10);
}

void Reader::host(const yaml::Node &parent) {
  const yaml::Node *node = parent.find("host");
  if (!node || !mapping(node, "host", {"bandwidth", "latency"},
                        {"update_bandwidth", "memory_bytes", "source"}))
    return;
  target.host.bytesPerSecond = inner(*node, "host", "bandwidth", 1, 1e18);
  target.host.latencySeconds = inner(*node, "host", "latency", 0, 10);
  target.host.updateBytesPerSecond =
      inner(*node, "host", "update_bandwidth", 1, 1e18);
  if (const yaml::Node *bytes = node->find("memory_bytes")) {
    note("host.memory_bytes", *bytes, *node);
    target.host.memoryBytes = integer(*bytes, "host.memory_bytes", 1);
  }
}

void Reader::drive(const yaml::Node &parent) {
  const yaml::Node *node = parent.find("drive");
  if (!node || !mapping(node, "drive", {"read_bandwidth", "write_bandwidth"},
                        {"source"}))
    return;
  target.drive.readBytesPerSecond =
      inner(*node, "drive", "read_bandwidth", 1, 1e18);
  target.drive.writeBytesPerSecond =
      inner(*node, "drive", "write_bandwidth", 1, 1e18);
}

void Reader::measured(const yaml::Node &parent) {
  const yaml::Node *node = parent.find("measured");
  if (!node || !mapping(node, "measured", {"operators"},
                        {"source", "collectives", "overheads", "moves"}))
    return;
  const yaml::Node *source = node->find("source");
  auto read = [&](const char *key, std::map<std::string, double> &seconds) {
    const yaml::Node *map = node->find(key);
    const std::string path = join("measured", key);
    if (!map)
      return;
    if (!map->isMapping())
      return error(map, "invalid-value", path,
                   "'" + path +
                       "' must map names to numbers, as accel-run --fit writes "
                       "them");
    for (const yaml::Entry &entry : map->entries)
      seconds[entry.key->text] =
          number(*entry.value, join(path, entry.key->text), 0, 1e6);
    target.figures.push_back({path, std::to_string(seconds.size()),
                              source ? text(source, "measured.source") : ""});
  };
  read("operators", target.measured);
  read("collectives", target.measuredCollectives);
  read("overheads", target.measuredOverheads);
  read("moves", target.measuredMoves);
}

std::optional<Target> Reader::read() {
  const yaml::Node *root = document.root();
  if (!mapping(root, "",
               {"name", "description", "kind", "ranks_per_node", "memory",
                "compute", "launch_seconds", "links", "overlap",
                "reduce_scatter"},
               {"dispatch_seconds", "host", "drive", "measured"}))
    return std::nullopt;
  target.name = text(root->find("name"), "name");
  target.description = text(root->find("description"), "description");
  if (const yaml::Node *kind =
          choice(root->find("kind"), "kind", {"cpu", "cuda"}))
    target.kind = kind->text == "cuda" ? TargetKind::Cuda : TargetKind::Cpu;
  if (const yaml::Node *value =
          figure(*root, "ranks_per_node", "ranks_per_node"))
    target.ranksPerNode = integer(*value, "ranks_per_node.value", 1);
  memory();
  if (const yaml::Node *node =
          section("compute", {"f32", "bf16", "f16"},
                  {"tf32", "fp8", "fp4", "multiprocessors", "capability"})) {
    if (node->find("capability"))
      if (const yaml::Node *value =
              figure(*node, "capability", "compute.capability"))
        target.capability = number(*value, "compute.capability.value", 1, 99);
    if (node->find("multiprocessors"))
      if (const yaml::Node *value =
              figure(*node, "multiprocessors", "compute.multiprocessors"))
        target.multiprocessors =
            integer(*value, "compute.multiprocessors.value", 1);
    for (plan::DType dtype :
         {plan::DType::F32, plan::DType::BF16, plan::DType::F16}) {
      const char *key = plan::toString(dtype);
      compute(*node->find(key), std::string("compute.") + key,
              target.compute[dtype]);
    }
    if (const yaml::Node *rate = node->find("tf32"))
      compute(*rate, "compute.tf32", target.tf32.emplace());
    if (const yaml::Node *rate = node->find("fp8"))
      compute(*rate, "compute.fp8", target.fp8.emplace());
    if (const yaml::Node *rate = node->find("fp4"))
      compute(*rate, "compute.fp4", target.fp4.emplace());
  }
  if (const yaml::Node *value =
          figure(*root, "launch_seconds", "launch_seconds"))
    target.launchSeconds = number(*value, "launch_seconds.value", 0, 1);
  if (root->find("dispatch_seconds"))
    if (const yaml::Node *value =
            figure(*root, "dispatch_seconds", "dispatch_seconds"))
      target.dispatchSeconds = number(*value, "dispatch_seconds.value", 0, 1);
  if (const yaml::Node *node = section("links", {"intra_node", "inter_node"})) {
    link(*node, "intra_node", target.insideNode);
    link(*node, "inter_node", target.betweenNodes);
  }
  host(*root);
  drive(*root);
  measured(*root);
  if (const yaml::Node *value = figure(*root, "overlap", "overlap"))
    // Below 0, on CPUs: a collective takes longer in a step than alone.
    target.overlap = number(*value, "overlap.value", -9, 1);
  if (const yaml::Node *value =
          figure(*root, "reduce_scatter", "reduce_scatter"))
    if (choice(value, "reduce_scatter.value", {"direct", "all_to_all"}))
      target.reduceScatter = value->text;
  if (failed)
    return std::nullopt;
  return std::move(target);
}

} // namespace

std::optional<Target> readTarget(const yaml::Document &document,
                                 DiagnosticEngine &engine) {
  return Reader(document, engine).read();
}

} // namespace accel
