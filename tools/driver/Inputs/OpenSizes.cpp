//===- OpenSizes.cpp - Sizes that a model leaves open ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/OpenSizes.h"

#include "frontends/TorchExport/Describe.h"
#include "runtime/plan/NpyHeader.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace accel {

using torchexport::Dimension;

namespace {

class Chooser {
public:
  Chooser(PlanInputs &inputs, const PlanOptions &options,
          DiagnosticEngine &engine)
      : inputs(inputs), options(options), engine(engine),
        program(inputs.model.program()), data(inputs.job.data),
        t(inputs.training) {}

  void takeNamed() {
    if (options.dims.empty())
      return;
    if (!program) {
      engine.error("export-sizes", options.config,
                   "--dim is for a .pt2, whose sizes may be open; this model "
                   "is a config.json",
                   "--micro-batch and --seq-len say its sizes");
      return;
    }
    auto dims = torchexport::resolveDims(*program, options.dims, engine);
    if (!dims)
      return;
    // Micro-batch and lengths are the job's, which a search may change.
    const auto places = torchexport::inputDimensions(*program);
    const bool others =
        std::any_of(places.begin(), places.end(), [](const Dimension &dim) {
          return isTokens(dim) && dim.input != "labels";
        });
    std::set<std::string> taken;
    for (const Dimension &dim : places) {
      const std::string symbol = torchexport::symbolOf(dim.size());
      auto at = dims->find(symbol);
      if (at == dims->end() || (dim.index != 0 && !isTokens(dim)) ||
          !taken.insert(symbol).second)
        continue;
      int64_t target = data.targetLength.value.value_or(0);
      const bool labels = dim.index != 0 && dim.input == "labels" && others;
      int64_t &size = dim.index == 0 ? t.microBatch
                      : labels       ? target
                                     : t.sequenceLength;
      if (size && size != at->second)
        engine.error("export-sizes", options.config,
                     "dimension " + std::to_string(dim.index) + " of '" +
                         printable(dim.input) + "' is " +
                         std::to_string(at->second) + " by --dim, and the " +
                         (dim.index == 0 ? "micro-batch"
                          : labels       ? "target length"
                                         : "sequence length") +
                         " is " + std::to_string(size),
                     "say one of them");
      size = at->second;
      if (labels)
        data.targetLength.value = target;
    }
    for (const std::string &symbol : taken)
      dims->erase(symbol);
    inputs.model.setOpenSizes(std::move(*dims));
  }

  void takeArrays() {
    if (data.kind.value != DataKind::Arrays)
      return;
    for (const auto &[name, path] : data.arrays) {
      std::string error; // accel-run says what is wrong with a file
      if (auto header = plan::readNpyHeader(path.value, error))
        shapes[name] = header->shape;
    }
    if (program) {
      takeShapesOfProgram();
    } else if (inputs.model.hasTokens()) {
      takeLength(columns("input_ids") ? "input_ids" : "labels");
      if (std::holds_alternative<huggingface::T5Config>(
              inputs.model.config()->family))
        takeTargets();
    }
  }

  void takeExported() {
    auto sizes = torchexport::exportedSizes(*program);
    std::string taken;
    if (!t.sequenceLength && !sizes.openSequence) {
      t.sequenceLength = sizes.sequenceLength;
      if (sizes.sequenceLength)
        taken = std::to_string(sizes.sequenceLength) + " tokens";
    }
    if (!t.microBatch && sizes.microBatch) {
      t.microBatch = sizes.microBatch;
      taken += (taken.empty() ? "" : " and ") +
               std::string("a micro-batch of ") +
               std::to_string(sizes.microBatch);
    }
    for (const Dimension &dim : torchexport::inputDimensions(*program))
      if (dim.input == "labels" && isTokens(dim) && !dim.size().symbolic() &&
          !data.targetLength.value && dim.size().value != t.sequenceLength &&
          sizes.sequenceLength != dim.size().value) {
        data.targetLength.value = dim.size().value;
        taken += (taken.empty() ? "" : " and ") + std::string("labels of ") +
                 std::to_string(dim.size().value) + " tokens";
      }
    if (!taken.empty())
      note("export-sizes", "the sizes are those of the export: " + taken,
           "export with open sizes (tools/export-model --dynamic) to choose "
           "others");
  }

  void fix() {
    std::map<std::string, int64_t> dims = inputs.model.openSizes().dims;
    torchexport::Sizes sizes;
    sizes.microBatch = t.microBatch;
    sizes.sequenceLength = t.sequenceLength;
    sizes.targetLength = data.targetLength.value.value_or(0);
    std::vector<std::pair<std::string, std::string>> fixed; // symbol, places
    auto place = [&](const std::string &symbol, const Dimension &dim) {
      for (auto &[name, places] : fixed)
        if (name == symbol) {
          places += ", " + printable(dim.place());
          return;
        }
      fixed.push_back({symbol, printable(dim.place())});
    };
    std::map<std::string, int64_t> values = dims;
    for (const Dimension &dim : torchexport::inputDimensions(*program)) {
      const std::string symbol = torchexport::symbolOf(dim.size());
      if (symbol.empty())
        continue;
      if (int64_t want = dim.wanted(sizes))
        values.emplace(symbol, want);
      place(symbol, dim);
    }
    std::string list;
    for (const auto &[symbol, places] : fixed) {
      if (!values.count(symbol)) {
        auto bound = program->bounds.find(symbol);
        if (bound == program->bounds.end() || !bound->second.most ||
            *bound->second.most > mostBound)
          continue; // an error asks for it
        values[symbol] = dims[symbol] = *bound->second.most;
        note("export-sizes",
             "'" + symbol + "' (" + places + ") is taken to be its bound, " +
                 std::to_string(*bound->second.most),
             "--dim " + symbol + "=N says otherwise");
      }
      list += (list.empty() ? "" : ", ") + symbol + " (" + places +
              ") = " + std::to_string(values[symbol]);
    }
    inputs.model.setOpenSizes(std::move(dims));
    if (!list.empty())
      note("export-sizes", "open sizes are fixed in this plan: " + list,
           "--micro-batch, --seq-len and --dim NAME=N choose them");
  }

private:
  /// Above this a bound is one that nobody chose.
  static constexpr int64_t mostBound = int64_t(1) << 31;

  void note(const char *code, const std::string &message,
            const std::string &hint) {
    engine.note(code, options.config, message, hint);
  }

  static bool isTokens(const Dimension &dim) {
    torchexport::Sizes sizes;
    sizes.sequenceLength = 1;
    return dim.wanted(sizes) != 0;
  }

  std::string fileOf(const std::string &input) const {
    return "'" +
           printable(std::filesystem::path(data.arrays.at(input).value)
                         .filename()
                         .string()) +
           "'";
  }

  /// Of an array with two dimensions; 0: there is none.
  int64_t columns(const std::string &input) const {
    auto found = shapes.find(input);
    return found == shapes.end() || found->second.size() != 2
               ? 0
               : found->second[1];
  }

  void takeLength(const std::string &input) {
    if (t.sequenceLength || !columns(input))
      return;
    t.sequenceLength = columns(input);
    note("default-sequence-length",
         "sequences are taken to be " + std::to_string(t.sequenceLength) +
             " tokens long, as those of " + fileOf(input),
         "set data.sequence_length to say so");
  }

  void takeTargets() {
    const int64_t target = columns("labels");
    if (data.targetLength.value || !target || target == t.sequenceLength)
      return;
    data.targetLength.value = target;
    note("default-sequence-length",
         "labels are taken to be " + std::to_string(target) +
             " tokens long, as those of " + fileOf("labels"),
         "set data.target_length to say so");
  }

  void takeShapesOfProgram() {
    std::map<std::string, int64_t> dims = inputs.model.openSizes().dims;
    bool labels = false;
    for (const Dimension &dim : torchexport::inputDimensions(*program)) {
      auto shape = shapes.find(dim.input);
      if (dim.index == 0 || shape == shapes.end() ||
          shape->second.size() != dim.meta->sizes.size())
        continue;
      const std::string symbol = torchexport::symbolOf(dim.size());
      if (isTokens(dim)) {
        labels |= dim.input == "labels" && !dims.count(symbol);
        if (dim.input != "labels")
          takeLength(dim.input);
        continue;
      }
      if (symbol.empty() || dims.count(symbol))
        continue;
      dims[symbol] = shape->second[dim.index];
      note("export-sizes",
           "'" + symbol + "' (" + printable(dim.place()) + ") is taken to be " +
               std::to_string(dims[symbol]) + ", as in " + fileOf(dim.input),
           "--dim " + symbol + "=N says otherwise");
    }
    if (labels) {
      takeLength("labels");
      takeTargets();
    }
    inputs.model.setOpenSizes(std::move(dims));
  }

  PlanInputs &inputs;
  const PlanOptions &options;
  DiagnosticEngine &engine;
  const torchexport::Program *program;
  DataConfig &data;
  plan::Job &t;
  std::map<std::string, std::vector<int64_t>> shapes; // of data.arrays
};

} // namespace

void takeGivenSizes(PlanInputs &inputs, const PlanOptions &options,
                    DiagnosticEngine &engine) {
  Chooser chooser(inputs, options, engine);
  chooser.takeNamed();
  chooser.takeArrays();
}

void takeExportedSizes(PlanInputs &inputs, const PlanOptions &options,
                       DiagnosticEngine &engine) {
  if (inputs.model.program())
    Chooser(inputs, options, engine).takeExported();
}

void fixOpenSizes(PlanInputs &inputs, const PlanOptions &options,
                  DiagnosticEngine &engine) {
  if (inputs.model.program() && !engine.hasErrors())
    Chooser(inputs, options, engine).fix();
}

} // namespace accel
