//===- TorchSave.cpp - Files of torch.save --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/TorchSave.h"
#include "frontends/Checkpoint/StateKeys.h"
#include "frontends/Checkpoint/TorchNames.h"
#include "frontends/TorchExport/Archive.h"

#include <fstream>
#include <set>

namespace accel::checkpoint {

namespace {

constexpr int64_t maxPickleBytes = int64_t(1) << 30;
/// state_dicts of optimizers nest three deep.
constexpr int maxDepth = 16;

class SaveReader {
public:
  SaveReader(const Pickle &pickle, const std::string &path, Part &part,
             DiagnosticEngine &diagnostics)
      : pickle(pickle), path(path), part(part), diagnostics(diagnostics) {}

  /// Values may be shared, even in cycles: depth and visits are bounded.
  bool visit(ValueId id, const std::string &name, int depth) {
    if (depth > maxDepth || ++visits > 4 * pickle.size())
      return fail("its dictionaries nest deeper or share more than a state "
                  "dict's do");
    const std::string_view type = pickle.typeOf(id);
    if (type.starts_with("torch._utils _rebuild_parameter")) {
      const std::vector<ValueId> &arguments = argumentsOf(id);
      return arguments.empty() ? fail("a parameter holds no tensor")
                               : visit(arguments[0], name, depth + 1);
    }
    // A tensor with attributes: what rebuilds it, its class, its arguments.
    if (type == "torch._tensor _rebuild_from_type_v2") {
      const std::vector<ValueId> &arguments = argumentsOf(id);
      return arguments.size() > 2 && isRebuilt(pickle.at(arguments[0]).text)
                 ? takeTensor(pickle.at(arguments[2]).items, name)
                 : fail("a tensor with attributes is none that torch writes");
    }
    if (isRebuilt(type))
      return takeTensor(argumentsOf(id), name);
    const auto entries = pickle.entries(id);
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      keys.push_back(join("", entries[i]));
      const size_t before = part.tensors.size();
      if (!visit(entries[i + 1], join(name, entries[i]), depth + 1))
        return false;
      const bool isGroups = keys.back() == "param_groups" &&
                            pickle.is(entries[i + 1], Pickle::Kind::List);
      if (isGroups ||
          (part.tensors.size() == before && isOfGroups({keys.back()}) &&
           keys.back() != "param_groups"))
        part.groups.push_back(keys);
      keys.pop_back();
    }
    const PickleValue &value = pickle.at(id);
    const bool isList =
        value.kind == Pickle::Kind::List || value.kind == Pickle::Kind::Tuple;
    for (size_t i = 0; isList && i < value.items.size(); ++i)
      if (!visit(value.items[i],
                 (name.empty() ? "" : name + ".") + std::to_string(i),
                 depth + 1))
        return false;
    part.objects += !isList && entries.empty();
    return true;
  }

private:
  static bool isRebuilt(std::string_view function) {
    return function.starts_with("torch._utils _rebuild_tensor");
  }
  bool fail(const std::string &message) {
    diagnostics.error("invalid-checkpoint", path, message,
                      "save the checkpoint again");
    return false;
  }
  const std::vector<ValueId> &argumentsOf(ValueId call) const {
    return pickle.at(pickle.at(call).items[1]).items;
  }
  std::string join(const std::string &name, ValueId key) const {
    std::string word;
    if (auto text = pickle.text(key))
      word = *text;
    else if (auto number = pickle.integer(key))
      word = std::to_string(*number);
    return name.empty() ? word : name + "." + word;
  }

  /// The metadata of _rebuild_tensor_v2: elements that are conjugated, or whose
  /// sign is turned, when they are read (Tensor.is_conj, Tensor.is_neg).
  bool isLazy(const std::vector<ValueId> &arguments) const {
    for (size_t i = 6; i < arguments.size(); ++i) {
      const PickleValue &metadata = pickle.at(arguments[i]);
      for (size_t at = 1;
           metadata.kind == Pickle::Kind::Dict && at < metadata.items.size();
           at += 2) {
        const auto key = pickle.text(metadata.items[at - 1]);
        const PickleValue &value = pickle.at(metadata.items[at]);
        if ((key == "conj" || key == "neg") &&
            value.kind == Pickle::Kind::Bool && value.number)
          return true;
      }
    }
    return false;
  }

  bool takeTensor(const std::vector<ValueId> &arguments,
                  const std::string &name) {
    const std::string what = "tensor '" + printable(name) + "' ";
    if (arguments.size() < 4 ||
        !pickle.is(arguments[0], Pickle::Kind::Persistent) ||
        !pickle.is(arguments[2], Pickle::Kind::Tuple))
      return fail(what + "has no storage or shape");
    if (isLazy(arguments)) {
      diagnostics.error("not-supported", path,
                        what + "is stored with the conjugate or negative bit "
                               "of torch: its elements are others than the "
                               "file's",
                        "save tensor.resolve_conj().resolve_neg()");
      return false;
    }
    const PickleValue &storage = pickle.at(pickle.at(arguments[0]).items[0]);
    if (storage.items.size() < 5)
      return fail(what + "has no storage");
    Tensor tensor;
    tensor.name = name;
    tensor.dtype = dtypeOfStorage(pickle.at(storage.items[1]).text);
    // Storages without a type leave the dtype to the tensor.
    for (size_t i = 4; i < arguments.size() && tensor.dtype.empty(); ++i)
      if (isTorchDtype(pickle.at(arguments[i]).text))
        tensor.dtype = pickle.at(arguments[i]).text.substr(6);
    if (tensor.dtype.empty())
      return fail(what + "has no dtype");
    tensor.bytes = elementBytes(tensor.dtype);
    for (ValueId item : pickle.at(arguments[2]).items) {
      auto size = pickle.integer(item);
      if (!size || *size < 0 ||
          __builtin_mul_overflow(tensor.bytes, *size, &tensor.bytes))
        return fail(what + "has no shape");
      tensor.shape.push_back(*size);
    }
    if (!takePlace(arguments, storage, tensor))
      return fail(what + "has no place in its storage");
    part.tensors.push_back(std::move(tensor));
    return true;
  }

  /// Where in the zip the tensor lies: data/KEY, from its offset on.
  bool takePlace(const std::vector<ValueId> &arguments,
                 const PickleValue &storage, Tensor &tensor) {
    Piece piece;
    piece.file = path;
    piece.zip = true;
    auto key = pickle.text(storage.items[2]);
    auto offset = pickle.integer(arguments[1]);
    const PickleValue &strides = pickle.at(arguments[3]);
    if (!key || !offset || *offset < 0 || strides.kind != Pickle::Kind::Tuple ||
        strides.items.size() != tensor.shape.size() ||
        __builtin_mul_overflow(*offset, elementBytes(tensor.dtype),
                               &piece.entryBegin))
      return false;
    piece.entry = "data/" + std::string(*key);
    int64_t expected = 1;
    for (size_t i = tensor.shape.size(); i-- > 0;) {
      auto stride = pickle.integer(strides.items[i]);
      if (!stride)
        return false;
      piece.contiguous &= *stride == expected || tensor.shape[i] <= 1;
      expected *= tensor.shape[i];
    }
    piece.contiguous |= tensor.bytes == 0;
    piece.offsets.assign(tensor.shape.size(), 0);
    piece.sizes = tensor.shape;
    tensor.pieces.push_back(std::move(piece));
    tensor.path = keys;
    return true;
  }

  const Pickle &pickle;
  const std::string &path;
  Part &part;
  DiagnosticEngine &diagnostics;
  size_t visits = 0;
  std::vector<std::string> keys; // of the dictionaries around the value
};

} // namespace

bool isSavedName(std::string_view name) {
  static const std::set<std::string_view> known = {
      "torch._utils _rebuild_tensor_v2",
      "torch._utils _rebuild_tensor_v3",
      "torch._utils _rebuild_parameter",
      "torch._utils _rebuild_parameter_with_state",
      "torch._tensor _rebuild_from_type_v2",
      "torch Tensor",
      "torch.nn.parameter Parameter",
      "torch.storage UntypedStorage",
      "torch Size",
      "torch device",
      "collections OrderedDict",
      "collections defaultdict"};
  return known.count(name) || isTorchDtype(name) ||
         !dtypeOfStorage(name).empty();
}

static bool beginsAsZip(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  char begin[4] = {};
  file.read(begin, sizeof begin);
  return std::string_view(begin, sizeof begin) == "PK\3\4";
}

std::optional<std::string> readDataPickle(const std::string &path,
                                          DiagnosticEngine &diagnostics) {
  std::string error;
  auto archive = torchexport::Archive::open(path, error);
  if (!archive && beginsAsZip(path)) {
    diagnostics.error("invalid-checkpoint", path,
                      "the file is cut or damaged: " + error,
                      "copy the file again, or take an earlier checkpoint");
    return std::nullopt;
  }
  std::optional<std::string> bytes;
  if (archive)
    bytes = archive->read("data.pkl", maxPickleBytes, error);
  if (!bytes)
    diagnostics.error("invalid-checkpoint", path, error,
                      "torch.save has written a zip with a data.pkl since "
                      "torch 1.6; save it again with a newer torch");
  return bytes;
}

/// Of bytes that were read already.
static bool takePickle(std::string_view bytes, const std::string &path,
                       DiagnosticEngine &diagnostics,
                       const std::function<bool(const Pickle &)> &take) {
  Pickle::Problem problem;
  const auto pickle = Pickle::parse(bytes, isSavedName, problem);
  return pickle ? take(*pickle) : reportPickle(problem, path, diagnostics);
}

bool takeSavedPickle(const std::string &path, DiagnosticEngine &diagnostics,
                     const std::function<bool(const Pickle &)> &take) {
  const auto bytes = readDataPickle(path, diagnostics);
  return bytes && takePickle(*bytes, path, diagnostics, take);
}

bool takeSavedTensors(const Pickle &pickle, const std::string &path, Part &part,
                      DiagnosticEngine &diagnostics) {
  part.format = PartFormat::TorchSave;
  return SaveReader(pickle, path, part, diagnostics)
      .visit(pickle.root(), "", 0);
}

bool parseTorchSave(std::string_view bytes, const std::string &path, Part &part,
                    DiagnosticEngine &diagnostics) {
  return takePickle(bytes, path, diagnostics, [&](const Pickle &pickle) {
    return takeSavedTensors(pickle, path, part, diagnostics);
  });
}

bool readTorchSave(const std::string &path, Part &part,
                   DiagnosticEngine &diagnostics) {
  const auto bytes = readDataPickle(path, diagnostics);
  return bytes && parseTorchSave(*bytes, path, part, diagnostics);
}

} // namespace accel::checkpoint
