//===- Sections.cpp - Key names, and sections of other jobs ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// launch copies every `section: {key: value}` into an attribute that nobody may
// ever read: a misspelt key is silent there. Here each gets a warning.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/DeepspeedKeys.h"
#include "frontends/Accelerate/Reader.h"

#include <algorithm>

using namespace accel;

void AccelerateReader::checkSectionKeys(const Section &section) {
  std::vector<std::string> known = keysOf(section.name, version);
  std::string_view required = requiredPrefix(section.name);
  for (const auto &[name, entry] : section.keys) {
    if (std::find(known.begin(), known.end(), name) != known.end())
      continue;
    std::string written = printable(entry->key->text);
    Field field{entry, prefix + section.name + "." + written};
    const KeyInfo *info = findKey(section.name, name);
    if (info &&
        info->name == std::string_view("fsdp_backward_prefetch_policy") &&
        section.present() && *config.distributedType == DistributedType::Fsdp)
      continue; // has a message of its own
    std::string message = "unknown key '" + written + "' in " + section.name +
                          " has no effect",
                hint;
    yaml::Edits fix;
    std::string full = std::string(required) + name;
    if (info && info->rules.instead && info->in(version)) {
      // `accelerate config` itself writes these.
      std::string_view right = info->rules.instead;
      right.remove_prefix(impliedPrefix(section.name).size());
      hint = "it is called " + std::string(right);
      fix = fixName(field, section, std::string(right));
    } else if (info) {
      bool future = version < info->since;
      AccelerateVersion v = future ? info->since : info->until;
      message = "'" + written + "' has no effect " +
                (future ? "before accelerate " : "since accelerate ") +
                toString(v);
      hint = info->rules.instead
                 ? "it is called " + std::string(info->rules.instead) + " now"
                 : "remove it";
      fix = info->rules.instead ? fixName(field, section, info->rules.instead)
                                : fixRemoval(field);
    } else if (!required.empty() &&
               std::find(known.begin(), known.end(), full) != known.end()) {
      hint = "write the whole name: " + full;
      fix = fixName(field, section, full);
    } else if (std::string place = section.name == "deepspeed_config"
                                       ? placeOfDeepspeedKey(written)
                                       : "";
               !place.empty()) {
      hint = place;
    } else if (const KeyInfo *elsewhere = findInSections(name, version);
               elsewhere && section.name != elsewhere->section) {
      hint = "it belongs below '" + std::string(elsewhere->section) + ":'";
      fix = fixMove(field, elsewhere->section, elsewhere->name);
    } else if (findKey("", entry->key->text)) {
      hint = "it belongs to the top level, without indentation";
    } else {
      std::string_view implied = impliedPrefix(section.name),
                       behind = implied.empty() ? required : implied;
      bool bare = !required.empty() && !name.starts_with(required);
      std::string best = nearestBehind(
          behind, bare ? std::string(required) + name : name, known);
      // As it is written, without the prefix that launch adds.
      if (!best.empty() && !implied.empty() && name != entry->key->text)
        best.erase(0, implied.size());
      if (!best.empty()) {
        hint = "did you mean '" + best + "'?";
        fix = fixName(field, section, best);
      }
    }
    report(Severity::Warning, "unknown-key", field, message, hint, true,
           std::move(fix));
    EffectiveValue v;
    v.key = field.key;
    v.asked = yaml::shortText(field.value());
    v.effective = "(ignored)";
    v.why = "unknown key";
    v.origin = Origin::Written;
    v.ignored = true;
    v.at = locate(field);
    config.effective.push_back(std::move(v));
  }
}

void AccelerateReader::readOtherSections() {
  DistributedType type = *config.distributedType;
  Section deepspeed = section("deepspeed_config"),
          megatron = section("megatron_lm_config"),
          mpirun = section("mpirun_config"), fp8 = section("fp8_config"),
          dynamo = section("dynamo_config"), ipex = section("ipex_config"),
          tp = section("tp_config");
  for (const Section *s :
       {&deepspeed, &megatron, &mpirun, &fp8, &dynamo, &ipex, &tp})
    if (findKey("", s->name)->in(version)) // else the key itself is an error
      checkSectionKeys(*s);
  if (type != DistributedType::Fsdp)
    checkSectionKeys(fsdp);

  auto unused = [&](const Section &s, DistributedType wanted) {
    if (!s.present() || type == wanted || unrecoverable)
      return;
    report(Severity::Warning, "unused-section", {s.entry, prefix + s.name},
           s.name + " has no effect with distributed_type " + toString(type),
           std::string("write distributed_type: ") + toString(wanted) +
               ", or remove the section",
           true);
  };
  unused(fsdp, DistributedType::Fsdp);
  unused(deepspeed, DistributedType::Deepspeed);
  unused(megatron, DistributedType::MegatronLm);
  // The simple launcher obeys mpirun_hostfile for NO as well.
  Field hostfile = in(mpirun, "mpirun_hostfile");
  bool starts = hostfile && !hostfile.isNull();
  if (starts && type != DistributedType::No)
    unused(mpirun, DistributedType::MultiCpu);
  if (type == DistributedType::MultiCpu && !starts && !unrecoverable &&
      (*config.numProcesses > 1 || config.assumed.numProcesses))
    report(Severity::Note, "mpirun-needed", top("distributed_type"),
           "`accelerate launch` starts one process here; the others come from "
           "mpirun or srun",
           "write mpirun_config: {mpirun_hostfile: FILE} to let it start them");
  readFp8(fp8);
  readDynamo(dynamo);
  if (unrecoverable)
    return;

  // The typed values, and why the rest has none.
  std::string other = std::string("distributed_type is ") + toString(type);
  if (type == DistributedType::Deepspeed)
    readDeepspeed(deepspeed);
  else
    unusedKeys(deepspeed, other);
  if (type == DistributedType::MegatronLm)
    readMegatron(megatron);
  else
    unusedKeys(megatron, other);
  if (type != DistributedType::Fsdp)
    unusedKeys(fsdp, other);
  if (type == DistributedType::Xla)
    readTpu();
  readDynamoValues(dynamo);
  bool eight = *config.mixedPrecision == MixedPrecision::Fp8;
  bool merged = findKey("", "fp8_config")->readIn(version);
  if (eight && merged)
    readFp8Values(fp8);
  else
    unusedKeys(fp8, eight ? "launch hands it on since accelerate 1.4"
                          : "mixed_precision is not fp8");
  if (eight)
    showFp8Layers();
  bool simple =
      type == DistributedType::No || type == DistributedType::MultiCpu;
  if (simple && mpirun.present()) {
    MpirunSettings &m = config.mpirun.emplace();
    text(m.hostfile, mpirun, "mpirun_hostfile");
    if (before(1, 13))
      integer(m.cclWorkers, mpirun, "mpirun_ccl");
  } else {
    unusedKeys(mpirun, other);
  }
  if (simple && ipex.present() && before(1, 13)) {
    IpexSettings &i = config.ipex.emplace();
    boolean(i.ipex, ipex, before(0, 20) ? "ipex_enabled" : "ipex");
    boolean(i.xpu, ipex, "use_xpu");
  } else {
    unusedKeys(ipex, other);
  }
  if (type == DistributedType::Tp && before(1, 7))
    integer(config.tensorParallel, tp, "tp_size");
}

/// What fp8 makes of the linear layers; the rest is in bf16.
void AccelerateReader::showFp8Layers() {
  const std::string backend = config.fp8 ? config.fp8->backend.value : "";
  if (backend == "MSAMP")
    return;
  const bool engine = backend == "TE";
  remember({nullptr, "linear layers"},
           engine ? "delayed scaling by TransformerEngine"
                  : "tensorwise scales by torchao",
           engine ? "every one whose sizes are multiples of 16; the rest "
                    "computes in bf16"
                  : "but the first and the last, whose sizes are multiples of "
                    "16; the rest computes in bf16",
           Origin::Derived);
}

void AccelerateReader::readFp8(const Section &fp8) {
  bool used = *config.mixedPrecision == MixedPrecision::Fp8;
  if (fp8.present() && !used && !unrecoverable &&
      !config.assumed.mixedPrecision) {
    report(Severity::Note, "unused-section", {fp8.entry, prefix + fp8.name},
           "fp8_config has no effect with mixed_precision " +
               std::string(toString(*config.mixedPrecision)),
           "", true);
    return;
  }
  if (!used)
    return;
  Field triple = in(fp8, "fp8_override_linear_precision");
  if (triple && triple.value().isString())
    report(Severity::Warning, "yaml-list", triple,
           yaml::shortText(triple.value()) +
               " is a string in YAML; Accelerate takes its first three "
               "characters",
           "write [false, false, false]", false, fixFlags(triple));
  Field backend = in(fp8, "fp8_backend");
  const std::string name =
      backend && !backend.isNull() ? yaml::pythonText(backend.value()) : "";
  checkFp8Backend(backend, name);
  if (*config.distributedType != DistributedType::Fsdp)
    return;
  // Where no backend is named, Accelerator.__init__ takes torchao before the
  // others, and since 1.8 stops then as it does for AO.
  const bool found = (name.empty() || equalsUpper(name, "NO")) && !before(1, 8);
  if ((equalsUpper(name, "AO") || found) && *config.cpuRamEfficientLoading)
    error("fp8-fsdp", backend ? backend : top("mixed_precision"),
          std::string(found ? "fp8 without a backend is torchao's where it is "
                              "installed, which"
                            : "fp8 backend AO") +
              " cannot be used with FSDP and fsdp_cpu_ram_efficient_loading, "
              "which is on",
          std::string("write fsdp_cpu_ram_efficient_loading: false") +
              (found ? ", or backend: TE in fp8_config" : ""));
  if (equalsUpper(name, "MSAMP"))
    error("fp8-fsdp", backend, "fp8 backend MSAMP cannot be used with FSDP",
          "write backend: TE or AO");
}

/// FP8BackendType of accelerate/utils/dataclasses.py.
void AccelerateReader::checkFp8Backend(const Field &backend,
                                       const std::string &name) {
  std::vector<std::string> known = valuesOf(
      *findKey("fp8_config", "fp8_backend")->choices, newestAccelerate);
  known.push_back("NO");
  if (name.empty() ||
      std::any_of(known.begin(), known.end(), [&](const std::string &other) {
        return equalsUpper(name, other.c_str());
      }))
    return;
  known.pop_back();
  const std::string meant = didYouMean(name, known);
  error("invalid-value", backend,
        yaml::shortText(backend.value()) + " is not an fp8 backend: expected " +
            oneOf(known) + "; every rank stops with a ValueError",
        meant.empty() ? "write one of them" : meant,
        fixSpelling(backend, known));
}

void AccelerateReader::readDynamo(const Section &dynamo) {
  constexpr const char *names[] = {"NO",
                                   "EAGER",
                                   "AOT_EAGER",
                                   "INDUCTOR",
                                   "AOT_TS_NVFUSER",
                                   "NVPRIMS_NVFUSER",
                                   "CUDAGRAPHS",
                                   "OFI",
                                   "FX2TRT",
                                   "ONNXRT",
                                   "TENSORRT",
                                   "AOT_TORCHXLA_TRACE_ONCE",
                                   "TORCHXLA_TRACE_ONCE",
                                   "NEURON",
                                   "TVM",
                                   "HPU_BACKEND"};
  // On load the old key replaces the section.
  Field field = top("dynamo_backend");
  if (!field)
    field = in(dynamo, "dynamo_backend");
  bool handedOn = *config.distributedType != DistributedType::Deepspeed &&
                  *config.distributedType != DistributedType::Xla;
  if (!handedOn && !unrecoverable && field && !field.isNull() &&
      !equalsUpper(yaml::pythonText(field.value()), "NO"))
    ignored(field,
            std::string("with distributed_type ") +
                toString(*config.distributedType) +
                ": `accelerate launch` does not hand it on there",
            true, "call torch.compile in the script");
  if (handedOn && !unrecoverable && !top("dynamo_backend"))
    checkDynamoValues(dynamo, field ? yaml::pythonText(field.value()) : "no");
  if (!field)
    return;
  const yaml::Node &value = field.value();
  if (!value.isString()) {
    error(value.kind == yaml::Kind::Bool ? "yaml-boolean" : "invalid-value",
          field,
          "dynamo_backend is " + yaml::shortText(value) +
              ", not a string; launch stops with an AttributeError",
          "write 'no' in quotes, or INDUCTOR",
          value.kind == yaml::Kind::Bool && !value.boolean
              ? fixText(field, "no")
              : yaml::Edits());
    return;
  }
  std::vector<std::string> known(std::begin(names), std::end(names));
  bool found = false, off = equalsUpper(value.text, "NO");
  for (const std::string &name : known)
    found |= equalsUpper(value.text, name);
  if (!found)
    error("invalid-value", field,
          yaml::shortText(value) + " is not a dynamo backend",
          didYouMean(value.text, known), fixSpelling(field, known));
  else if (!off && handedOn && options.forPlanning &&
           !equalsUpper(value.text, "INDUCTOR"))
    notSupported(field,
                 "what torch.compile (" + printable(value.text) +
                     ") saves for the backward and fuses is not modelled yet",
                 "write INDUCTOR, or dynamo_backend: 'no' to plan the model as "
                 "it runs without it");
}

/// TorchDynamoPlugin reads the flags in every rank, whether something compiles
/// or not; the mode is torch.compile's to refuse.
void AccelerateReader::checkDynamoValues(const Section &dynamo,
                                         const std::string &backend) {
  for (const char *name : {"dynamo_use_fullgraph", "dynamo_use_dynamic",
                           "dynamo_use_regional_compilation"})
    if (Field flag = in(dynamo, name))
      envBool(flag);
  Field mode = in(dynamo, "dynamo_mode");
  if (!mode || !equalsUpper(backend, "INDUCTOR"))
    return;
  std::vector<std::string> known =
      valuesOf(*findKey("dynamo_config", "dynamo_mode")->choices, version);
  // Of torch, and not of launch's command line.
  known.insert(known.end(), {"max-autotune-no-cudagraphs", "lite"});
  std::string text = yaml::pythonText(mode.value());
  if (std::find(known.begin(), known.end(), text) == known.end())
    error(mode.isNull() ? "yaml-null" : "invalid-value", mode,
          yaml::shortText(mode.value()) +
              " is not a mode of torch.compile; every rank stops with a "
              "RuntimeError",
          "write default, reduce-overhead, max-autotune or "
          "max-autotune-no-cudagraphs",
          fixSpelling(mode, known));
  if (usesCudaGraphs(text))
    checkCudaGraphs(mode, in(dynamo, "dynamo_use_dynamic"));
}

/// What keeps torch from replaying what it recorded
/// (torch/_inductor/cudagraph_utils.py, cudagraphify_impl of
/// cudagraph_trees.py).
void AccelerateReader::checkCudaGraphs(const Field &mode,
                                       const Field &dynamic) {
  const std::string asked =
      "dynamo_mode " + printable(mode.value().text) + " asks for CUDA graphs";
  const char *fix = "write default or max-autotune-no-cudagraphs";
  auto isTrue = [](const Field &field) {
    return field && field.value().kind == yaml::Kind::Bool &&
           field.value().boolean;
  };
  if (isTrue(top("use_cpu")))
    report(Severity::Warning, "cuda-graphs", mode,
           asked + "; torch skips them because all tensors are on the CPU",
           fix);
  else if (isTrue(dynamic))
    report(Severity::Warning, "cuda-graphs", mode,
           asked + ", and dynamic shapes are recorded once for each length "
                   "(torch warns from the ninth on)",
           "pad batches to one length, or write default");
}
