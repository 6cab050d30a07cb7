//===- LaunchEnvironment.cpp - What accelerate launch would set -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// prepare_simple_launcher_cmd_env, prepare_multi_gpu_env, prepare_deepspeed_
// cmd_env, prepare_tpu and prepare_sagemager_args_inputs of accelerate/utils/
// launch.py (before 0.17: of accelerate/commands/launch.py), of each release.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/LaunchEnvironment.h"
#include "frontends/Accelerate/LaunchArguments.h"
#include "frontends/Accelerate/LaunchExports.h"

#include <algorithm>

using namespace accel;
using V = AccelerateVersion;

const char *accel::toString(Launcher launcher) {
  constexpr const char *names[] = {"simple", "torchrun", "deepspeed",
                                   "tpu",    "tpu pod",  "sagemaker"};
  return names[static_cast<int>(launcher)];
}

namespace {

class Preparation {
public:
  Preparation(const LaunchArguments &args, V version, LaunchEnvironment &out)
      : args(args), version(version), out(out) {}

  void run();

private:
  bool before(int major, int minor) const { return version < V{major, minor}; }
  void set(const std::string &name, std::optional<std::string> value,
           const PythonValue &from = {}, std::string when = "");
  void exports(std::span<const Export> list);
  void simple();
  void torchrun();
  void deepspeed();
  void tpu();
  void sagemaker();
  void visibleDevices();
  void mixedPrecision();
  void fp8();
  void overridesOf14(const PythonValue &value);
  void setOverrides(const std::vector<std::string> &items,
                    const PythonValue &value);
  void dynamo();
  void fsdp();
  void mesh();
  void threads();
  void machines(bool checksPort);

  const LaunchArguments &args;
  const V version;
  LaunchEnvironment &out;
};

void Preparation::set(const std::string &name, std::optional<std::string> value,
                      const PythonValue &from, std::string when) {
  auto &all = out.variables;
  std::erase_if(all,
                [&](const EnvironmentVariable &v) { return v.name == name; });
  EnvironmentVariable variable{name, std::move(value), from.key, 0,
                               0,    std::move(when)};
  if (from.node) {
    variable.line = from.node->range.begin.line;
    variable.column = from.node->range.begin.column;
  }
  all.push_back(std::move(variable));
}

void Preparation::exports(std::span<const Export> list) {
  for (const Export &e : list) {
    if (version < e.since || version >= e.until)
      continue;
    const PythonValue &value = args[e.attribute];
    bool ifSet = e.form == PlainIfSet || e.form == LowerIfSet;
    if (ifSet && value.isNone())
      continue;
    bool lower = e.form == Lower || e.form == LowerIfSet;
    set(e.name, lower ? lowerCase(value.text) : value.text, value);
  }
}

void Preparation::visibleDevices() {
  const PythonValue &ids = args["gpu_ids"];
  if (before(0, 13) || ids.isNone() || ids.text == "all" || args.flag("mps"))
    return;
  // That release has the two the wrong way round.
  if (version == V{0, 21} && out.launcher == Launcher::Torchrun)
    return set(args.distributedType == "MULTI_XPU" ? "CUDA_VISIBLE_DEVICES"
                                                   : "ZE_AFFINITY_MASK",
               ids.text, ids);
  struct {
    const char *type, *variable;
    V since;
  } constexpr devices[] = {
      {"MULTI_XPU", "ZE_AFFINITY_MASK", {0, 20}},
      {"MULTI_MLU", "MLU_VISIBLE_DEVICES", {0, 29}},
      {"MULTI_SDAA", "SDAA_VISIBLE_DEVICES", {1, 5}},
      {"MULTI_MUSA", "MUSA_VISIBLE_DEVICES", {0, 33}},
      {"MULTI_NPU", "ASCEND_RT_VISIBLE_DEVICES", {0, 21}},
      {"MULTI_HPU", "HABANA_VISIBLE_MODULES", {1, 5}},
      {"MULTI_NEURON", "NEURON_RT_VISIBLE_CORES", {1, 13}},
  };
  for (const auto &device : devices)
    if (args.distributedType == device.type && version >= device.since)
      return set(device.variable, ids.text, ids);
  set("CUDA_VISIBLE_DEVICES", ids.text, ids);
}

void Preparation::mixedPrecision() {
  const PythonValue &precision = args["mixed_precision"];
  std::string mode = precision.lower();
  std::vector<std::string> known =
      valuesOf(*findKey("", "mixed_precision")->choices, version);
  if (std::find(known.begin(), known.end(), mode) == known.end())
    throw LaunchRefusal{"ValueError: Unknown mixed_precision mode: " + mode};
  set(before(0, 15) ? "MIXED_PRECISION" : "ACCELERATE_MIXED_PRECISION", mode,
      precision);
  if (mode == "fp8" && !before(0, 34))
    fp8();
}

void Preparation::fp8() {
  for (const auto &[name, value] : args.all()) {
    if (!name.starts_with("fp8_") || value.isNone())
      continue;
    std::string variable = "ACCELERATE_";
    for (char c : name)
      variable += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    if (name != "fp8_override_linear_precision" || before(1, 4)) {
      set(variable, value.text, value);
      continue;
    }
    // In 1.4 a string as the command line takes it, and nothing else, also not
    // the default; until 1.8 the items are not made strings.
    if (!before(1, 4) && before(1, 5)) {
      overridesOf14(value);
      continue;
    }
    bool strings = value.isString();
    if (before(1, 9) && !strings && out.launcher == Launcher::Simple)
      throw LaunchRefusal{"TypeError: expected str, "
                          "fp8_override_linear_precision has booleans"};
    // Three items of a list, or three characters of a string.
    std::vector<std::string> items;
    if (!value.node) {
      items.assign(3, "False");
    } else if (value.node->isSequence()) {
      for (const yaml::Node *item : value.node->items)
        items.push_back(yaml::pythonText(*item));
    } else if (value.isString()) {
      for (size_t i = 0; i < value.text.size(); ++i)
        items.push_back(value.text.substr(i, 1));
    }
    setOverrides(items, value);
  }
}

void Preparation::overridesOf14(const PythonValue &value) {
  if (!value.isString())
    throw LaunchRefusal{"AttributeError: fp8_override_linear_precision has no "
                        "attribute 'strip'"};
  std::string_view text = value.text;
  auto strip = [](std::string_view s, std::string_view these) {
    size_t begin = s.find_first_not_of(these), end = s.find_last_not_of(these);
    return begin == s.npos ? std::string_view()
                           : s.substr(begin, end - begin + 1);
  };
  text = strip(text, "()");
  std::vector<std::string> items;
  for (size_t at = 0; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    items.emplace_back(strip(text.substr(at, comma - at), " \t\n\r\f\v"));
    at = comma + 1;
  }
  setOverrides(items, value);
}

void Preparation::setOverrides(const std::vector<std::string> &items,
                               const PythonValue &value) {
  if (items.size() < 3)
    throw LaunchRefusal{"IndexError: fp8_override_linear_precision has no "
                        "three items"};
  constexpr const char *names[] = {"FPROP", "DGRAD", "WGRAD"};
  for (int i = 0; i < 3; ++i)
    set(std::string("ACCELERATE_FP8_OVERRIDE_") + names[i], items[i], value);
}

void Preparation::dynamo() {
  if (before(0, 15))
    return;
  const PythonValue &backend = args["dynamo_backend"];
  if (!backend.isString())
    throw LaunchRefusal{"AttributeError: dynamo_backend has no attribute "
                        "'upper'"};
  std::string upper = backend.text;
  for (char &c : upper)
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::vector<std::string> known =
      valuesOf(*findKey("", "dynamo_backend")->choices, version);
  if (std::find(known.begin(), known.end(), upper) == known.end())
    throw LaunchRefusal{"ValueError: Unknown dynamo backend: " + upper};
  set("ACCELERATE_DYNAMO_BACKEND", upper, backend);
  const PythonValue &mode = args["dynamo_mode"];
  // (torchrun's environment is made of str(value).)
  if (!before(0, 17) && !mode.isString() && out.launcher == Launcher::Simple)
    throw LaunchRefusal{"TypeError: dynamo_mode is no string"};
  exports(dynamoExports);
}

void Preparation::threads() {
  if (before(0, 12))
    return set("OMP_NUM_THREADS", "1");
  bool all = before(0, 14);
  if (!all && !(args.flag("use_cpu") && !before(0, 17)))
    return set("OMP_NUM_THREADS", "1");
  set("OMP_NUM_THREADS", std::nullopt, args["use_cpu"],
      all || before(0, 34)
          ? "the number of physical cores, at least 1"
          : "physical cores / processes on a machine, at least 1");
}

void Preparation::mesh() {
  if (before(1, 10) || !args.flag("use_parallelism_config"))
    return;
  set("ACCELERATE_USE_PARALLELISM_CONFIG", "true");
  exports(meshExports);
  if (args["parallelism_config_cp_size"].exceeds(1))
    exports(cpExports);
  if (!before(1, 12) && args["parallelism_config_sp_size"].exceeds(1))
    exports(spExports);
}

/// What launch calculates with the machines before it starts torchrun.
void Preparation::machines(bool checksPort) {
  const PythonValue &count = args["num_machines"];
  const PythonValue &port = args["main_process_port"];
  if (count.exceeds(1)) {
    const PythonValue &processes = args["num_processes"];
    if (!processes.isNumber())
      throw LaunchRefusal{"TypeError: unsupported operand type(s) for //"};
    args["machine_rank"].toInt();
    if (before(0, 13) && !args["main_process_ip"].isString())
      throw LaunchRefusal{"TypeError: expected str, main_process_ip is none"};
  }
  bool mine =
      !count.exceeds(1) || before(0, 25) || args["machine_rank"].toInt() == 0;
  // (is_port_in_use hands the port to connect_ex.)
  bool integer = port.kind == yaml::Kind::Int || port.kind == yaml::Kind::Bool;
  if (checksPort && !before(0, 21) && mine && !port.isNone() && !integer)
    throw LaunchRefusal{"TypeError: 'str' object cannot be interpreted as an "
                        "integer"};
  if (checksPort && !before(0, 21) && mine && integer &&
      (port.number < 0 || port.number > 65535))
    throw LaunchRefusal{"OverflowError: port must be 0-65535"};
}

void Preparation::simple() {
  const PythonValue &useCpu = args["use_cpu"];
  if (before(0, 12)) {
    set("USE_CPU", "False");
    return mixedPrecision();
  }
  const PythonValue &hostfile = args["mpirun_hostfile"];
  const PythonValue &processes = args["num_processes"];
  const PythonValue &machines = args["num_machines"];
  if (!hostfile.isNone() && processes.truth && machines.truth &&
      !(processes.isNumber() && machines.isNumber()))
    throw LaunchRefusal{"TypeError: unsupported operand type(s) for //"};
  if (!hostfile.isNone() && !hostfile.isString())
    throw LaunchRefusal{"TypeError: mpirun_hostfile is no string"};
  std::string cpu = useCpu.text;
  set(before(0, 15) ? "USE_CPU" : "ACCELERATE_USE_CPU", cpu, useCpu);
  if (before(0, 19))
    set(before(0, 15) ? "USE_MPS_DEVICE" : "ACCELERATE_USE_MPS_DEVICE",
        args.flag("mps") ? "True" : "False");
  if (args.flag("mps") && !before(0, 13) && before(0, 17))
    set("PYTORCH_ENABLE_MPS_FALLBACK", "1");
  if (args.flag("debug") && !before(0, 22))
    set("ACCELERATE_DEBUG_MODE", "true", args["debug"]);
  visibleDevices();

  const PythonValue &ip = args["main_process_ip"];
  const PythonValue &port = args["main_process_port"];
  bool several = machines.exceeds(1);
  if (several && (ip.isNone() || (port.isNone() && !before(1, 8))))
    throw LaunchRefusal{"AssertionError: When using multiple machines, you "
                        "need to specify the main process " +
                        std::string(ip.isNone() ? "IP." : "port.")};
  bool group = several ||
               ((before(1, 8) || !processes.isNone()) && processes.exceeds(1));
  if (group) {
    if (!ip.isNone() && !ip.isString())
      throw LaunchRefusal{"TypeError: expected str, main_process_ip is none"};
    set("MASTER_ADDR", ip.isNone() ? "127.0.0.1" : ip.text, ip);
    set("MASTER_PORT",
        port.isNone() && !(several && before(1, 8)) ? "29500" : port.text,
        port);
    const PythonValue &workers = args["mpirun_ccl"];
    bool counts =
        !before(0, 28) && before(1, 8) && several && !hostfile.isNone();
    if (counts && before(0, 32) && !workers.isString())
      throw LaunchRefusal{"TypeError: expected str, mpirun_ccl is an int"};
    if (counts)
      set("CCL_WORKER_COUNT", workers.text, workers);
    else if (!before(1, 8) && before(1, 13))
      set("CCL_WORKER_COUNT", std::nullopt, workers,
          workers.text + " where oneCCL is installed, else 0");
  }
  // A string that is not empty until 1.12, a variable's name until 1.14.
  bool affinity = !before(1, 8) && before(1, 13);
  if (!before(1, 15)) {
    std::optional<bool> flag = stringToBool(cpu);
    if (!flag)
      throw LaunchRefusal{"ValueError: invalid truth value " + lowerCase(cpu)};
    affinity = *flag;
  }
  if (affinity) {
    set("KMP_AFFINITY", "granularity=fine,compact,1,0", useCpu);
    set("KMP_BLOCKTIME", "1", useCpu);
  }
  mixedPrecision();
  dynamo();
  threads();
  const PythonValue &ipex = args["ipex"], &xpu = args["use_xpu"];
  if (before(0, 20) && args.flag("ipex_enabled") && args.flag("use_cpu"))
    set("IPEX_ENABLED", lowerCase(args["ipex_enabled"].text),
        args["ipex_enabled"]);
  const char *intel = "where intel_extension_for_pytorch is installed";
  // (From 1.10 on the flag is gone, and such a machine without the key fails.)
  if (!before(0, 20) && before(1, 13) && !ipex.isNone())
    set("ACCELERATE_USE_IPEX", lowerCase(ipex.text), ipex, intel);
  if (!before(0, 20) && before(1, 6))
    set("ACCELERATE_USE_XPU", lowerCase(xpu.text), xpu, intel);
}

void Preparation::fsdp() {
  if (!args.flag("use_fsdp"))
    return;
  const PythonValue &ram = args["fsdp_cpu_ram_efficient_loading"];
  if (!before(0, 24) && ram.truth && !args.flag("fsdp_sync_module_states"))
    throw LaunchRefusal{"ValueError: When using "
                        "`--fsdp_cpu_ram_efficient_loading` set "
                        "`--fsdp_sync_module_states` to `True`"};
  set(before(0, 15) ? "USE_FSDP" : "ACCELERATE_USE_FSDP", "true",
      args["distributed_type"]);
  exports(fsdpExports);
}

void Preparation::torchrun() {
  machines(true);
  if (args.flag("debug") && !before(0, 22))
    set("ACCELERATE_DEBUG_MODE", "true", args["debug"]);
  visibleDevices();
  mixedPrecision();
  dynamo();
  fsdp();
  if (args.flag("use_tp")) {
    set("ACCELERATE_USE_TP", "true");
    set("TP_SIZE", args["tp_size"].text, args["tp_size"]);
  }
  if (args.flag("use_megatron_lm")) {
    set(before(0, 15) ? "USE_MEGATRON_LM" : "ACCELERATE_USE_MEGATRON_LM",
        "true");
    exports(megatronExports);
  }
  threads();
  mesh();
}

void Preparation::deepspeed() {
  const PythonValue &launcher = args["deepspeed_multinode_launcher"];
  bool standard = launcher.text == "standard";
  bool runner = args["num_machines"].exceeds(1) && !standard;
  if (runner) {
    bool filtered = !args["deepspeed_exclusion_filter"].isNone() ||
                    !args["deepspeed_inclusion_filter"].isNone();
    if (!filtered && !args["num_processes"].isNumber())
      throw LaunchRefusal{"TypeError: unsupported operand type(s) for //"};
    bool mine = before(0, 25) || args["machine_rank"].toInt() == 0;
    const PythonValue &port = args["main_process_port"];
    if (mine && !before(0, 21) && !port.isNone() && !port.isNumber())
      throw LaunchRefusal{"TypeError: main_process_port is no integer"};
  } else {
    machines(true);
  }
  if (args.flag("debug") && !before(0, 22))
    set("ACCELERATE_DEBUG_MODE", "true", args["debug"]);
  visibleDevices();
  if (before(0, 14))
    set("PYTHONPATH", std::nullopt, {}, "the path of Python");
  else
    set("PYTHONPATH", std::nullopt, {},
        "PYTHONPATH of the shell and the current folder");
  mixedPrecision();
  if (!before(0, 16))
    set("ACCELERATE_CONFIG_DS_FIELDS", lowerCase(args.deepspeedFields));
  set(before(0, 15) ? "USE_DEEPSPEED" : "ACCELERATE_USE_DEEPSPEED", "true");
  exports(deepspeedExports);
  if (!before(1, 12))
    mesh();
}

void Preparation::tpu() {
  const PythonValue &precision = args["mixed_precision"];
  bool zeros = before(0, 20) && !before(0, 12);
  bool bf16 = precision.isString() && precision.text == "bf16";
  if (zeros && (bf16 || !before(0, 17))) {
    set("XLA_USE_BF16", "0");
    set("XLA_DOWNCAST_BF16", "0");
  }
  if (bf16 && !before(0, 12)) {
    bool cast = args.flag("downcast_bf16");
    set(cast ? "XLA_DOWNCAST_BF16" : "XLA_USE_BF16", "1",
        cast ? args["downcast_bf16"] : precision);
  }
  if (args.flag("debug") && !before(0, 22))
    set("ACCELERATE_DEBUG_MODE", "true", args["debug"]);
  if (out.launcher == Launcher::TpuPod)
    set("ACCELERATE_IN_TPU_POD", "1");
}

void Preparation::sagemaker() {
  std::string prefix = before(0, 15) ? "" : "ACCELERATE_";
  if (args.distributedType.empty())
    throw LaunchRefusal{"AttributeError: distributed_type has no attribute "
                        "'value'"};
  set(prefix + "USE_SAGEMAKER", "true");
  mixedPrecision();
  dynamo();
  set(prefix + "SAGEMAKER_DISTRIBUTED_TYPE", args.distributedType);
}

void Preparation::run() {
  switch (out.launcher) {
  case Launcher::Simple:
    simple();
    break;
  case Launcher::Torchrun:
    torchrun();
    break;
  case Launcher::Deepspeed:
    deepspeed();
    break;
  case Launcher::Tpu:
  case Launcher::TpuPod:
    tpu();
    break;
  case Launcher::Sagemaker:
    sagemaker();
    break;
  }
}

Launcher select(const LaunchArguments &args) {
  if (args.sagemaker)
    return Launcher::Sagemaker;
  if (args.flag("use_deepspeed"))
    return Launcher::Deepspeed;
  for (const char *flag :
       {"use_fsdp", "use_megatron_lm", "multi_gpu", "use_tp"})
    if (args.flag(flag))
      return Launcher::Torchrun;
  if (args.flag("tpu"))
    return args.flag("tpu_use_cluster") ? Launcher::TpuPod : Launcher::Tpu;
  return Launcher::Simple;
}

} // namespace

LaunchEnvironment
accel::simulateLaunch(const yaml::Node &root, AccelerateVersion version,
                      const std::string &prefix,
                      const std::vector<std::string> &foreign) {
  LaunchEnvironment out;
  try {
    LaunchArguments args(root, version, prefix, foreign);
    out.launcher = select(args);
    Preparation(args, version, out).run();
  } catch (const LaunchRefusal &refusal) {
    out.refused = refusal.error;
    out.variables.clear();
  }
  std::sort(out.variables.begin(), out.variables.end(),
            [](const EnvironmentVariable &a, const EnvironmentVariable &b) {
              return a.name < b.name;
            });
  return out;
}
