//===- Description.cpp - Models as data -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/Description.h"
#include "frontends/ModuleTree/Settings.h"

#include <algorithm>
#include <unordered_map>

namespace accel::moduletree {
namespace {

/// Enough for every published model, little enough for a hostile file.
constexpr int64_t mostLayers = 2048;
constexpr size_t mostModules = 200000;

/// The member of a model of several inputs that its sizes are taken from.
constexpr std::string_view languageModel = "text_config";

struct Line {
  int depth = 0;
  std::vector<std::string_view> words;
};

/// transformers.activations.ACT2FN.
struct Activation {
  const char *name, *className;
};
constexpr Activation activations[] = {
    {"gelu", "GELUActivation"},
    {"gelu_10", "ClippedGELUActivation"},
    {"gelu_fast", "FastGELUActivation"},
    {"gelu_new", "NewGELUActivation"},
    {"gelu_python", "GELUActivation"},
    {"gelu_pytorch_tanh", "GELUTanh"},
    {"gelu_python_tanh", "GELUTanh"},
    {"gelu_accurate", "AccurateGELUActivation"},
    {"hardswish", "Hardswish"},
    {"laplace", "LaplaceActivation"},
    {"leaky_relu", "LeakyReLU"},
    {"linear", "LinearActivation"},
    {"mish", "MishActivation"},
    {"quick_gelu", "QuickGELUActivation"},
    {"relu", "ReLU"},
    {"relu2", "ReLUSquaredActivation"},
    {"relu6", "ReLU6"},
    {"sigmoid", "Sigmoid"},
    {"silu", "SiLUActivation"},
    {"sqrtsoftplus", "SqrtSoftplusActivation"},
    {"swish", "SiLU"},
    {"tanh", "Tanh"},
};

class Builder {
public:
  Builder(const Family &family, huggingface::ConfigReader &config)
      : family(family), config(config),
        settings(family.settings, family.prefix, config) {
    for (const char *text : family.body)
      read(text);
  }

  std::vector<std::string> architectures() const {
    std::vector<std::string> names;
    for (const auto &[name, line] : definitions)
      if (name[0] < 'a')
        names.push_back(name);
    return names;
  }

  /// "" is the first, "base" the one that AutoModel makes.
  std::string resolve(const std::string &architecture) const {
    if (architecture.empty())
      return definitions.front().first;
    if (architecture != "base")
      return architecture;
    for (const auto &[name, line] : definitions)
      for (size_t i = line + 1; i < lines.size() && lines[i].depth > 0; ++i)
        if (lines[i].words[0] == "@auto")
          return name;
    return "";
  }

  std::optional<ModuleTree> build(const std::string &architecture) {
    tree.architecture = architecture;
    size_t line = definitionOf(architecture);
    add(-1, "", architecture, line);
    readMarks(line);
    keepInFp32();
    for (const std::string &name : settings.noSplit())
      tree.noSplit.push_back(name);
    std::sort(tree.noSplit.begin(), tree.noSplit.end());
    if (hasLanguageModel)
      return config.failed() ? std::nullopt : std::optional(std::move(tree));
    for (bool window : settings.slidingLayers())
      tree.attention.push_back(window ? Attention::Sliding : Attention::Full);
    tree.blocks = settings.layerBlocks();
    tree.tensorParallelPlan = settings.hasTensorParallelPlan();
    tree.sizes = {settings.sizeOf("hidden_size"),
                  settings.sizeOf("vocab_size"),
                  settings.sizeOf("num_hidden_layers"),
                  settings.sizeOf("num_attention_heads"),
                  settings.sizeOf("num_key_value_heads"),
                  settings.sizeOf("max_position_embeddings")};
    tree.numbers = settings.numbers();
    tree.texts = settings.allTexts();
    if (config.failed())
      return std::nullopt;
    return std::move(tree);
  }

  void setDtype(plan::DType dtype) { tree.dtype = dtype; }

private:
  void read(std::string_view body) {
    for (std::string_view text : split(body, '\n')) {
      Line line;
      size_t blanks = text.find_first_not_of(' ');
      if (blanks == std::string_view::npos)
        continue;
      line.depth = static_cast<int>(blanks / 2);
      line.words = split(text.substr(blanks), ' ');
      if (line.depth == 0)
        definitions.emplace_back(className(line.words[0]), lines.size());
      lines.push_back(std::move(line));
    }
  }

  const Family &family;
  huggingface::ConfigReader &config;
  Settings settings;
  ModuleTree tree;
  /// Sizes and attention are those of a part's `text_config`.
  bool hasLanguageModel = false;
  std::vector<Line> lines;
  std::vector<std::pair<std::string, size_t>> definitions;

  std::string className(std::string_view word) const {
    if (word.starts_with("$"))
      return family.prefix + std::string(word.substr(1));
    if (!word.starts_with("!"))
      return std::string(word);
    std::string name = settings.text(std::string(word.substr(1)));
    // T5's feed_forward_proj.
    if (name.starts_with("gated-"))
      name =
          name == "gated-" + std::string("gelu") ? "gelu_new" : name.substr(6);
    for (const Activation &a : activations)
      if (name == a.name)
        return a.className;
    // A class all the same: nothing wraps activations.
    return name;
  }

  /// A module's name, or a path of names, with the base model's for `%`.
  std::string withBase(std::string_view name) const {
    return name.starts_with("%") ? family.base + std::string(name.substr(1))
                                 : std::string(name);
  }

  /// Line of a class of the body, or npos.
  size_t definitionOf(const std::string &name) const {
    for (const auto &[other, line] : definitions)
      if (other == name)
        return line;
    return std::string::npos;
  }

  bool holds(std::string_view condition) {
    return settings.value(condition.substr(1)) != 0;
  }

  std::vector<int64_t> shape(std::string_view dims) {
    std::vector<int64_t> result;
    for (std::string_view dim : split(dims, ','))
      result.push_back(settings.size(dim));
    return result;
  }

  /// `name[dims]`, `~name[dims]:i64`, either with `?condition` behind.
  void addTensor(int module, std::string_view word) {
    bool buffer = word.starts_with("~");
    if (buffer)
      word.remove_prefix(1);
    size_t open = word.find('['), close = word.rfind(']');
    std::string_view name = word.substr(0, open),
                     dims = word.substr(open + 1, close - open - 1),
                     rest = word.substr(close + 1);
    plan::DType dtype = buffer ? plan::DType::F32 : tree.dtype;
    bool asModel = false;
    if (rest.starts_with(":")) {
      size_t end = std::min(rest.find('?'), rest.size());
      asModel = rest.substr(0, end) == ":model";
      if (asModel)
        dtype = tree.dtype;
      else if (auto given =
                   plan::parseDType(std::string(rest.substr(1, end - 1))))
        dtype = *given;
      rest.remove_prefix(end);
    }
    if (rest.starts_with("?") && !holds(rest))
      return;
    const std::string &owner = tree.modules[static_cast<size_t>(module)].fqn;
    std::string fqn = (owner.empty() ? "" : owner + ".") + std::string(name);
    if (buffer)
      tree.buffers.push_back({fqn, shape(dims), dtype, module, asModel});
    else
      tree.parameters.push_back({fqn, shape(dims), dtype, module, -1});
  }

  /// Adds a module and everything in it.
  void add(int parent, const std::string &name, const std::string &ofClass,
           size_t line) {
    if (config.failed())
      return;
    if (tree.modules.size() >= mostModules)
      return config.error("", "the model has more than " +
                                  std::to_string(mostModules) + " modules");
    TreeModule module;
    module.parent = parent;
    module.className = ofClass;
    if (parent >= 0) {
      const std::string &above = tree.modules[static_cast<size_t>(parent)].fqn;
      module.fqn = above.empty() ? name : above + "." + name;
    }
    int index = static_cast<int>(tree.modules.size());
    tree.modules.push_back(std::move(module));
    if (line == std::string::npos)
      return;
    expand(index, line, ofClass);
  }

  /// Adds what stands in `line` and below it to a module: tensors, then the
  /// part of the body that it names, then its own children.
  void expand(int module, size_t line, const std::string &ofClass) {
    std::string part;
    for (size_t i = 1; i < lines[line].words.size(); ++i) {
      std::string_view word = lines[line].words[i];
      if (word.starts_with("="))
        part = className(word.substr(1));
      else if (i > 1 && word.find('[') != std::string_view::npos)
        addTensor(module, word);
    }
    // A class described elsewhere in the body.
    if (part.empty() && lines[line].depth > 0)
      part = ofClass;
    size_t definition = definitionOf(part);
    if (definition != std::string::npos && definition != line)
      expand(module, definition, ofClass);
    addChildren(module, line);
  }

  void addChildren(int parent, size_t line) {
    int depth = lines[line].depth;
    for (size_t i = line + 1; i < lines.size() && lines[i].depth > depth; ++i) {
      const Line &child = lines[i];
      if (child.depth != depth + 1 || child.words[0].starts_with("@"))
        continue;
      std::string_view last = child.words.back();
      if (last.starts_with("?") && !holds(last))
        continue;
      if (child.words[1].starts_with("*")) {
        addPart(parent, child.words[0], child.words[1].substr(1));
        continue;
      }
      std::string ofClass = className(child.words[1]);
      if (!child.words[0].starts_with("[")) {
        add(parent, withBase(child.words[0]), ofClass, i);
        continue;
      }
      std::string_view count = child.words[0];
      int64_t n = settings.size(count.substr(1, count.size() - 2));
      if (n > mostLayers)
        return config.error("", "the model has " + std::to_string(n) +
                                    " layers, more than " +
                                    std::to_string(mostLayers));
      for (int64_t k = 0; k < n; ++k) {
        settings.setLayer(k);
        add(parent, std::to_string(k), ofClass, i);
      }
      settings.setLayer(0);
    }
  }

  /// "vision_config:siglip_vision_model": the member, and its model_type where
  /// it says none or the whole's. "text_config?:qwen2_vl_text": without the
  /// member, its settings are the whole's.
  void addPart(int parent, std::string_view name, std::string_view said) {
    const size_t colon = said.find(':');
    std::string member(said.substr(0, colon));
    const bool mayBeFlat = member.ends_with('?');
    if (mayBeFlat)
      member.pop_back();
    std::string type(said.substr(colon + 1));
    const nlohmann::json *given = config.find(member);
    if (given ? !given->is_object() : !mayBeFlat)
      return config.error(given ? member : "",
                          given ? "'" + member + "' must be an object"
                                : "'" + member + "' is missing");
    std::optional<huggingface::ConfigReader::Section> section;
    if (given) {
      section.emplace(config, member);
      const std::optional<std::string> own = config.text("model_type");
      if (own && *own != family.modelType)
        type = *own;
    }
    const Family *inner = findFamily(type);
    if (!inner)
      return config.unsupported("model_type", "parts of model type '" +
                                                  printable(type) +
                                                  "' are not supported yet");
    Builder builder(*inner, config);
    builder.setDtype(tree.dtype);
    const std::string base = builder.resolve("base");
    if (config.failed())
      return;
    std::optional<ModuleTree> part = builder.build(base);
    if (part)
      join(parent, std::string(name), std::move(*part),
           member == languageModel);
  }

  void join(int parent, const std::string &name, ModuleTree part,
            bool language) {
    const std::string &above = tree.modules[static_cast<size_t>(parent)].fqn;
    const std::string root = above.empty() ? name : above + "." + name;
    const int modules = static_cast<int>(tree.modules.size()),
              parameters = static_cast<int>(tree.parameters.size());
    auto moved = [&](const std::string &fqn) {
      return fqn.empty() ? root : root + "." + fqn;
    };
    for (TreeModule &module : part.modules) {
      module.parent = module.parent < 0 ? parent : module.parent + modules;
      module.fqn = moved(module.fqn);
      tree.modules.push_back(std::move(module));
    }
    for (TreeParameter &parameter : part.parameters) {
      parameter.fqn = moved(parameter.fqn);
      parameter.module += modules;
      if (parameter.tiedTo >= 0)
        parameter.tiedTo += parameters;
      tree.parameters.push_back(std::move(parameter));
    }
    for (TreeBuffer &buffer : part.buffers) {
      buffer.fqn = moved(buffer.fqn);
      buffer.module += modules;
      tree.buffers.push_back(std::move(buffer));
    }
    for (const std::string &kept : part.noSplit)
      if (std::find(tree.noSplit.begin(), tree.noSplit.end(), kept) ==
          tree.noSplit.end())
        tree.noSplit.push_back(kept);
    if (!language)
      return;
    hasLanguageModel = true;
    tree.attention = std::move(part.attention);
    tree.blocks = std::move(part.blocks);
    tree.sizes = part.sizes;
    tree.numbers = std::move(part.numbers);
    tree.texts = std::move(part.texts);
    tree.tensorParallelPlan = part.tensorParallelPlan;
  }

  /// The `@` lines of the root's class.
  void readMarks(size_t line) {
    if (auto base = markOf(line, "@base"))
      tree.base = withBase(*base);
    tree.outputEmbedding = markOf(line, "@output");
    tree.inputEmbedding = markOf(line, "@input");
    if (!tree.inputEmbedding && tree.base)
      tree.inputEmbedding = inputOfBase(line);
    for (size_t i : linesOf(line)) {
      const std::vector<std::string_view> &words = lines[i].words;
      if (words[0] == "@tie" && (words.size() < 4 || holds(words[3])))
        tie(tied(words[1]), tied(words[2]));
    }
  }

  /// The lines directly below one.
  std::vector<size_t> linesOf(size_t line) const {
    std::vector<size_t> below;
    for (size_t i = line + 1;
         i < lines.size() && lines[i].depth > lines[line].depth; ++i)
      if (lines[i].depth == lines[line].depth + 1)
        below.push_back(i);
    return below;
  }

  /// What a class's mark names.
  std::optional<std::string> markOf(size_t line, std::string_view mark) const {
    for (size_t i : linesOf(line))
      if (lines[i].words[0] == mark)
        return std::string(lines[i].words[1]);
    return std::nullopt;
  }

  /// The input embedding of the base model that a class holds.
  std::optional<std::string> inputOfBase(size_t line) const {
    for (size_t i : linesOf(line)) {
      if (withBase(lines[i].words[0]) != *tree.base)
        continue;
      size_t base = definitionOf(className(lines[i].words[1]));
      if (base != std::string::npos)
        if (auto input = markOf(base, "@input"))
          return *tree.base + "." + *input;
    }
    return std::nullopt;
  }

  /// A parameter that a `@tie` names.
  std::string tied(std::string_view name) const {
    constexpr std::string_view input = "@input";
    return name.starts_with(input) ? tree.inputEmbedding.value_or("") +
                                         std::string(name.substr(input.size()))
                                   : withBase(name);
  }

  void tie(const std::string &name, const std::string &source) {
    int a = -1, b = -1;
    for (size_t i = 0; i < tree.parameters.size(); ++i) {
      if (tree.parameters[i].fqn == name)
        a = static_cast<int>(i);
      if (tree.parameters[i].fqn == source)
        b = static_cast<int>(i);
    }
    if (a < 0 || b < 0)
      return;
    auto first = [&](int i) {
      int to = tree.parameters[static_cast<size_t>(i)].tiedTo;
      return to < 0 ? i : to;
    };
    int low = std::min(first(a), first(b));
    for (int i : {a, b})
      if (i != low)
        tree.parameters[static_cast<size_t>(i)].tiedTo = low;
  }

  /// transformers keeps some modules in fp32 where the rest is fp16.
  void keepInFp32() {
    if (tree.dtype != plan::DType::F16)
      return;
    for (TreeParameter &p : tree.parameters)
      for (std::string_view part : split(p.fqn, '.'))
        for (const std::string &kept : settings.keptInFp32())
          if (part == kept)
            p.dtype = plan::DType::F32;
  }
};

constexpr const std::vector<Family> *allFamilies[] = {
    &llamaFamilies,  &llamaLikeFamilies, &mixtureFamilies, &gptFamilies,
    &hybridFamilies, &encoderFamilies,   &wrapperFamilies};

} // namespace

const Family *findFamily(std::string_view modelType) {
  for (const auto *table : allFamilies)
    for (const Family &family : *table)
      if (modelType == family.modelType)
        return &family;
  return nullptr;
}

std::vector<std::string> familyNames() {
  std::vector<std::string> names;
  for (const auto *table : allFamilies)
    for (const Family &family : *table)
      names.push_back(family.modelType);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<ModuleTree> instantiate(const Family &family,
                                      std::string architecture,
                                      huggingface::ConfigReader &config,
                                      DiagnosticEngine &engine,
                                      const std::string &file) {
  Builder builder(family, config);
  if (config.failed())
    return std::nullopt;
  architecture = builder.resolve(architecture);
  std::vector<std::string> known = builder.architectures();
  if (std::find(known.begin(), known.end(), architecture) == known.end()) {
    std::string hint = "described are ";
    for (size_t i = 0; i < known.size(); ++i)
      hint += (i ? ", " : "") + known[i];
    engine.note("unknown-model", file,
                "the modules of '" + printable(architecture) +
                    "' are not known here, so what depends on them is not "
                    "checked",
                hint);
    return std::nullopt;
  }
  // Spellings of transformers 4 and 5.
  for (const char *key : {"torch_dtype", "dtype"})
    if (std::optional<std::string> name = config.text(key)) {
      if (*name == "float16")
        builder.setDtype(plan::DType::F16);
      else if (*name == "bfloat16")
        builder.setDtype(plan::DType::BF16);
      else if (*name == "float64")
        builder.setDtype(plan::DType::F64);
    }
  return builder.build(architecture);
}

} // namespace accel::moduletree
