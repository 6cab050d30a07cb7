//===- JobAttr.cpp - What only the runtime reads, as an attribute ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/JobAttr.h"

#include "runtime/plan/Fields/Job.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace accel {
namespace {

/// `given` without what `standard` says too.
DictionaryAttr without(DictionaryAttr given, DictionaryAttr standard) {
  SmallVector<NamedAttribute> kept;
  for (NamedAttribute field : given) {
    Attribute other = standard.get(field.getName());
    auto dict = dyn_cast<DictionaryAttr>(field.getValue());
    auto otherDict = dyn_cast_or_null<DictionaryAttr>(other);
    if (dict && otherDict) {
      dict = without(dict, otherDict);
      if (!dict.empty())
        kept.emplace_back(field.getName(), dict);
    } else if (field.getValue() != other) {
      kept.push_back(field);
    }
  }
  return DictionaryAttr::get(given.getContext(), kept);
}

/// Visits the fields of a struct (runtime/plan/Fields/Rule.h).
class Writer {
public:
  static constexpr bool reads = false;
  explicit Writer(MLIRContext *context) : b(context) {}

  void about(const char *, const char *) {}
  template <typename Problem> void check(const char *, Problem) {}
  template <typename T>
  void operator()(StringRef key, const T &value, const plan::Rule & = {}) {
    list.push_back(b.getNamedAttr(key, attr(value)));
  }
  template <typename T>
  void optional(StringRef key, const T &value, const plan::Rule & = {}) {
    if (value != T())
      (*this)(key, value);
  }
  template <typename T, typename D>
  void optional(StringRef key, const T &value, const D &standard,
                const plan::Rule & = {}) {
    if (value != standard)
      (*this)(key, value);
  }
  template <typename List>
  void group(StringRef key, const plan::Rule &, List fieldsOf) {
    Writer inner(b.getContext());
    fieldsOf(inner);
    list.push_back(b.getNamedAttr(key, inner.dictionary()));
  }

  template <typename T>
  static DictionaryAttr write(MLIRContext *context, const T &value) {
    Writer given(context), standard(context);
    fields(given, value);
    fields(standard, T());
    return without(given.dictionary(), standard.dictionary());
  }

private:
  Attribute attr(bool v) { return b.getBoolAttr(v); }
  Attribute attr(int64_t v) { return b.getI64IntegerAttr(v); }
  Attribute attr(double v) { return b.getF64FloatAttr(v); }
  Attribute attr(const std::string &v) { return b.getStringAttr(v); }
  Attribute attr(const std::map<std::string, std::string> &v) {
    SmallVector<NamedAttribute> entries;
    for (const auto &[key, value] : v)
      entries.push_back(b.getNamedAttr(key, attr(value)));
    return b.getDictionaryAttr(entries);
  }
  template <typename T> Attribute attr(const std::vector<T> &v) {
    return b.getArrayAttr(
        llvm::map_to_vector(v, [&](const T &value) { return attr(value); }));
  }
  template <typename T> Attribute attr(const T &v) {
    return write(b.getContext(), v);
  }
  DictionaryAttr dictionary() { return b.getDictionaryAttr(list); }

  Builder b;
  SmallVector<NamedAttribute> list;
};

class Reader {
public:
  static constexpr bool reads = true;
  Reader(DictionaryAttr dict, std::string &error) : dict(dict), error(error) {}

  void about(const char *, const char *) {}
  template <typename Problem> void check(StringRef, Problem problem) {
    if (error.empty())
      error = problem();
  }
  template <typename T>
  void operator()(StringRef key, T &value, const plan::Rule & = {}) {
    seen.push_back(key);
    if (Attribute attr = dict.get(key); attr && !read(attr, value))
      fail("'" + key + "' has the wrong type");
  }
  template <typename T>
  void optional(StringRef key, T &value, const plan::Rule & = {}) {
    (*this)(key, value);
  }
  template <typename T, typename D>
  void optional(StringRef key, T &value, const D &, const plan::Rule & = {}) {
    (*this)(key, value);
  }
  template <typename List>
  void group(StringRef key, const plan::Rule &, List fieldsOf) {
    seen.push_back(key);
    Attribute attr = dict.get(key);
    if (!attr)
      return;
    auto inner = dyn_cast<DictionaryAttr>(attr);
    if (!inner)
      return fail("'" + key + "' has the wrong type");
    Reader reader(inner, error);
    fieldsOf(reader);
    reader.close();
  }

  template <typename T>
  static bool readStruct(Attribute attr, T &value, std::string &error) {
    auto dict = dyn_cast<DictionaryAttr>(attr);
    if (!dict)
      return false;
    Reader reader(dict, error);
    fields(reader, value);
    reader.close();
    return true;
  }

private:
  void fail(const Twine &what) {
    if (error.empty())
      error = what.str();
  }
  void close() {
    for (NamedAttribute field : dict)
      if (!llvm::is_contained(seen, field.getName().getValue()))
        fail("unknown field '" + field.getName().getValue() + "'");
  }

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
    v.clear();
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
  SmallVector<StringRef> seen;
};

} // namespace

DictionaryAttr jobToAttr(MLIRContext *context, const plan::Job &job) {
  return Writer::write(context, job);
}

std::string jobFromAttr(DictionaryAttr attr, plan::Job &job) {
  std::string error;
  Reader::readStruct(attr, job, error);
  return error;
}

} // namespace accel
