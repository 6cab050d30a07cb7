//===- JobAttr.cpp - What only the runtime reads, as an attribute ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/JobAttr.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace accel {
namespace {

// One description of each struct's fields serves both directions.
template <typename V> void fields(V &v, plan::OptimizerGroup &g) {
  v("lr", g.lr);
  v("weight_decay", g.weightDecay);
}
template <typename V> void fields(V &v, plan::Optimizer &o) {
  v("name", o.name);
  v("values", o.values);
  v("max_grad_norm", o.maxGradNorm);
  v("groups", o.groups);
}
template <typename V> void fields(V &v, plan::LrSchedule &s) {
  v("steps", s.steps);
  v("warmup_steps", s.warmupSteps);
  v("decay", s.decay);
  v("min_lr", s.minLr);
}
template <typename V> void fields(V &v, plan::Data &d) {
  v("kind", d.kind);
  v("path", d.path);
  v("arrays", d.arrays);
  v("dtype", d.dtype);
  v("shuffle", d.shuffle);
  v("seed", d.seed);
}
template <typename V> void fields(V &v, plan::Checkpoint &c) {
  v("dir", c.dir);
  v("every", c.every);
  v("keep", c.keep);
  v("state_dict", c.stateDict);
}
template <typename V> void fields(V &v, plan::InputLimit &i) {
  v("name", i.name);
  v("limit", i.limit);
}
template <typename V> void fields(V &v, plan::Job &j) {
  v("model_name", j.modelName);
  v("model_path", j.modelPath);
  v("weight_files", j.weightFiles);
  v("archive", j.archive);
  v("adapter_config", j.adapterConfig);
  v("seed", j.seed);
  v("random_seed", j.randomSeed);
  v("precision", j.precision);
  v("loss_scaling", j.lossScaling);
  v("micro_batch", j.microBatch);
  v("sequence_length", j.sequenceLength);
  v("vocab", j.vocab);
  v("input_limits", j.inputLimits);
  v("accumulation", j.accumulation);
  v("optimizer", j.optimizer);
  v("schedule", j.schedule);
  v("data", j.data);
  v("eval_data", j.evalData);
  v("eval_every", j.evalEvery);
  v("eval_batches", j.evalBatches);
  v("checkpoint", j.checkpoint);
}

class Writer {
public:
  explicit Writer(MLIRContext *context) : b(context) {}

  template <typename T> void operator()(StringRef name, T &value) {
    list.push_back({b.getNamedAttr(name, attr(value)), value == T()});
  }
  /// Leaves out what is empty or zero, if the reader then takes it as that: a
  /// weight decay of 0 is not the default.
  template <typename T> static DictionaryAttr write(MLIRContext *c, T &value) {
    Writer writer(c), standard(c);
    T defaults;
    fields(writer, value);
    fields(standard, defaults);
    SmallVector<NamedAttribute> kept;
    for (auto [field, other] : llvm::zip_equal(writer.list, standard.list))
      if (!field.empty || field.entry != other.entry)
        kept.push_back(field.entry);
    return writer.b.getDictionaryAttr(kept);
  }

private:
  Attribute attr(bool v) { return b.getBoolAttr(v); }
  Attribute attr(int64_t v) { return b.getI64IntegerAttr(v); }
  Attribute attr(double v) { return b.getF64FloatAttr(v); }
  Attribute attr(std::string &v) { return b.getStringAttr(v); }
  Attribute attr(std::map<std::string, std::string> &v) {
    SmallVector<NamedAttribute> entries;
    for (auto &[key, value] : v)
      entries.push_back(b.getNamedAttr(key, attr(value)));
    return b.getDictionaryAttr(entries);
  }
  template <typename T> Attribute attr(std::vector<T> &v) {
    SmallVector<Attribute> entries;
    for (T &value : v)
      entries.push_back(attr(value));
    return b.getArrayAttr(entries);
  }
  template <typename T> Attribute attr(T &v) {
    return write(b.getContext(), v);
  }

  struct Field {
    NamedAttribute entry;
    bool empty;
  };

  Builder b;
  SmallVector<Field> list;
};

class Reader {
public:
  Reader(DictionaryAttr dict, std::string &error) : dict(dict), error(error) {}

  template <typename T> void operator()(StringRef name, T &value) {
    if (Attribute attr = dict.get(name)) {
      ++seen;
      if (!read(attr, value) && error.empty())
        error = ("'" + name + "' has the wrong type").str();
    }
  }
  template <typename T>
  static bool readStruct(Attribute attr, T &value, std::string &error) {
    auto dict = dyn_cast<DictionaryAttr>(attr);
    if (!dict)
      return false;
    Reader reader(dict, error);
    fields(reader, value);
    if (reader.seen != dict.size() && error.empty())
      error = "an unknown field stands beside '" +
              dict.begin()->getName().str() + "'";
    return true;
  }

private:
  bool read(Attribute attr, bool &v) {
    auto typed = dyn_cast<BoolAttr>(attr);
    return typed && ((v = typed.getValue()), true);
  }
  bool read(Attribute attr, int64_t &v) {
    auto typed = dyn_cast<IntegerAttr>(attr);
    return typed && !isa<BoolAttr>(attr) && ((v = typed.getInt()), true);
  }
  bool read(Attribute attr, double &v) {
    auto typed = dyn_cast<FloatAttr>(attr);
    return typed && ((v = typed.getValueAsDouble()), true);
  }
  bool read(Attribute attr, std::string &v) {
    auto typed = dyn_cast<StringAttr>(attr);
    return typed && ((v = typed.str()), true);
  }
  bool read(Attribute attr, std::map<std::string, std::string> &v) {
    auto typed = dyn_cast<DictionaryAttr>(attr);
    if (!typed)
      return false;
    for (NamedAttribute entry : typed)
      if (!read(entry.getValue(), v[entry.getName().str()]))
        return false;
    return true;
  }
  template <typename T> bool read(Attribute attr, std::vector<T> &v) {
    auto typed = dyn_cast<ArrayAttr>(attr);
    if (!typed)
      return false;
    for (Attribute entry : typed)
      if (!read(entry, v.emplace_back()))
        return false;
    return true;
  }
  template <typename T> bool read(Attribute attr, T &v) {
    return readStruct(attr, v, error);
  }

  DictionaryAttr dict;
  std::string &error;
  size_t seen = 0;
};

} // namespace

DictionaryAttr jobToAttr(MLIRContext *context, const plan::Job &job) {
  plan::Job copy = job;
  return Writer::write(context, copy);
}

std::string jobFromAttr(DictionaryAttr attr, plan::Job &job) {
  std::string error;
  Reader::readStruct(attr, job, error);
  return error;
}

} // namespace accel
