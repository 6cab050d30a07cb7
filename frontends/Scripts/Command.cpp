//===- Command.cpp - What a launching command says ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// accelerate/commands/launch.py of 1.15, torch/distributed/run.py of 2.15,
// deepspeed/launcher/runner.py of 0.19, trl/cli of 1.10.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/Command.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace accel::scripts {
namespace {

/// Options of another launcher: their values are skipped unless they are read.
struct LauncherOption {
  std::string_view name; // with underscores
  bool takesValue;
};

constexpr LauncherOption torchrunOptions[] = {
    {"nnodes", true},
    {"nproc_per_node", true},
    {"rdzv_backend", true},
    {"rdzv_endpoint", true},
    {"rdzv_id", true},
    {"rdzv_conf", true},
    {"standalone", false},
    {"max_restarts", true},
    {"monitor_interval", true},
    {"start_method", true},
    {"event_log_handler", true},
    {"role", true},
    {"module", false},
    {"no_python", false},
    {"run_path", false},
    {"log_dir", true},
    {"redirects", true},
    {"tee", true},
    {"local_ranks_filter", true},
    {"node_rank", true},
    {"master_addr", true},
    {"master_port", true},
    {"local_addr", true},
    {"logs_specs", true},
    {"numa_binding", true},
    {"signals_to_handle", true},
    {"virtual_local_rank", false},
    {"duplicate_stdout_filters", true},
    {"duplicate_stderr_filters", true},
};

constexpr LauncherOption deepspeedOptions[] = {
    {"hostfile", true},
    {"include", true},
    {"exclude", true},
    {"num_nodes", true},
    {"min_elastic_nodes", true},
    {"max_elastic_nodes", true},
    {"num_gpus", true},
    {"num_accelerators", true},
    {"master_port", true},
    {"master_addr", true},
    {"node_rank", true},
    {"launcher", true},
    {"launcher_args", true},
    {"module", false},
    {"no_python", false},
    {"no_local_rank", false},
    {"no_ssh_check", false},
    {"no_ssh", false},
    {"force_multi", false},
    {"save_pid", false},
    {"enable_each_rank_log", true},
    {"autotuning", true},
    {"elastic_training", false},
    {"bind_cores_to_rank", false},
    {"bind_core_list", true},
    {"ssh_port", true},
    {"venv_script", true},
};

std::string fileName(const std::string &path) {
  return std::filesystem::path(path).filename().string();
}

/// NAME=VALUE before a command.
bool isAssignment(const std::string &word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 ||
      (word[0] >= '0' && word[0] <= '9'))
    return false;
  return std::all_of(
      word.begin(), word.begin() + static_cast<long>(equals), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c >= '0' && c <= '9') || c == '_';
      });
}

class CommandReader {
public:
  CommandReader(const std::vector<Word> &words, NodeStore &nodes,
                DiagnosticEngine &engine)
      : words(words), nodes(nodes), engine(engine) {}

  std::optional<Command> run() {
    while (i < words.size() && isAssignment(words[i].text)) {
      const std::string &text = words[i].text;
      Word value = words[i++];
      value.text = text.substr(text.find('=') + 1);
      command.environment[text.substr(0, text.find('='))] = std::move(value);
    }
    if (i == words.size()) {
      error({}, "the command is empty",
            "write it behind --: accelerate launch train.py --bf16");
      return std::nullopt;
    }
    if (!readProgram() || failed)
      return std::nullopt;
    readProcessEnvironment();
    if (failed)
      return std::nullopt;
    return std::move(command);
  }

private:
  const std::vector<Word> &words;
  NodeStore &nodes;
  DiagnosticEngine &engine;
  size_t i = 0;
  bool failed = false;
  Command command;

  void error(const yaml::Range &at, const std::string &message,
             const std::string &hint, const char *code = "invalid-command") {
    Diagnostic d;
    d.code = code;
    d.file = commandLineName;
    d.message = message;
    d.hint = hint;
    d.setRange(at);
    engine.report(std::move(d));
    failed = true;
  }

  bool at(std::string_view text) const {
    return i < words.size() && words[i].text == text;
  }

  bool readProgram() {
    const std::string program = fileName(words[i].text);
    const yaml::Range &place = words[i].range;
    if (program == "accelerate") {
      ++i;
      if (!at("launch")) {
        error(i < words.size() ? words[i].range : place,
              "of accelerate's commands only 'launch' starts a job",
              "accelerate launch SCRIPT ARGUMENTS");
        return false;
      }
      ++i;
      return readAccelerate();
    }
    if (program == "accelerate-launch") {
      ++i;
      return readAccelerate();
    }
    if (program == "torchrun" || program == "deepspeed") {
      ++i;
      return readLauncher(program == "torchrun");
    }
    if (program.starts_with("python")) {
      ++i;
      command.launcher = Launcher::Python;
      while (i < words.size() && words[i].text.starts_with("-") &&
             words[i].text != "-m")
        ++i; // -u, -O and the like
      if (at("-m") && i + 1 < words.size()) {
        const std::string &module = words[i + 1].text;
        const bool torch = module == "torch.distributed.run" ||
                           module == "torch.distributed.launch";
        if (torch || module == "accelerate.commands.launch" ||
            module == "deepspeed.launcher.runner") {
          i += 2;
          return module == "accelerate.commands.launch" ? readAccelerate()
                                                        : readLauncher(torch);
        }
        ++i;
      }
      return readScript();
    }
    if (program == "trl" || program == "axolotl" ||
        program == "llamafactory-cli" || program == "lmf") {
      return readTool(program);
    }
    if (program.ends_with(".py")) {
      command.launcher = Launcher::Python;
      return readScript();
    }
    error(place,
          "'" + printable(program) + "' is no launcher that is known here",
          "known are accelerate launch, torchrun, deepspeed, python, trl, "
          "axolotl and llamafactory-cli");
    return false;
  }

  OptionParser launchOptions() {
    OptionParser parser(commandLineName, Family::Accelerate, nodes, engine);
    std::vector<const ArgumentInfo *> options;
    for (const ArgumentInfo &info : argumentsOf(Family::Accelerate))
      options.push_back(&info);
    parser.setOptions(std::move(options), /*abbreviations=*/false);
    return parser;
  }

  bool takeFlag(OptionParser &parser) {
    constexpr std::pair<std::string_view, const char *> letters[] = {
        {"-q", "--quiet"}, {"-m", "--module"}, {"-t", "--tee"}};
    std::vector<Word> line = words;
    for (const auto &[letter, name] : letters)
      if (line[i].text == letter)
        line[i].text = name;
    const size_t before = i;
    const size_t errors = engine.errors();
    std::optional<Given> flag = parser.take(line, i);
    failed |= engine.errors() > errors;
    if (!flag)
      return i > before;
    if (flag->name == "config_file") {
      command.configFile = {flag->value->text, commandLineName,
                            flag->value->range};
    } else {
      command.flags.add(std::move(*flag));
    }
    return true;
  }

  bool readAccelerate() {
    command.launcher = Launcher::Accelerate;
    OptionParser parser = launchOptions();
    while (i < words.size() && words[i].text.starts_with("-")) {
      if (words[i].text == "--") {
        ++i;
        break;
      }
      if (takeFlag(parser))
        continue;
      std::vector<std::string> names;
      for (const ArgumentInfo &info : argumentsOf(Family::Accelerate))
        names.push_back("--" + std::string(info.name));
      std::string given = words[i].text.substr(0, words[i].text.find('='));
      std::replace(given.begin() + 2, given.end(), '-', '_');
      const std::string hint = didYouMean(given, names);
      error(words[i].range,
            "accelerate launch has no option '" + printable(words[i].text) +
                "', and stops with it",
            hint.empty() ? "arguments of the script stand behind its name"
                         : hint);
      return false;
    }
    return readScript();
  }

  bool readLauncher(bool torchrun) {
    command.launcher = torchrun ? Launcher::Torchrun : Launcher::Deepspeed;
    const std::span<const LauncherOption> options =
        torchrun ? std::span<const LauncherOption>(torchrunOptions)
                 : std::span<const LauncherOption>(deepspeedOptions);
    while (i < words.size() && words[i].text.starts_with("-")) {
      Word word = words[i];
      if (word.text == "--") {
        ++i;
        break;
      }
      if (word.text == "-m")
        word.text = "--module";
      if (word.text == "-r" || word.text == "-t")
        word.text = word.text == "-r" ? "--redirects" : "--tee";
      const size_t equals = word.text.find('=');
      std::string name = word.text.substr(0, equals);
      name.erase(0, name.find_first_not_of('-'));
      std::replace(name.begin(), name.end(), '-', '_');
      auto known = std::find_if(options.begin(), options.end(),
                                [&](const auto &o) { return o.name == name; });
      if (known == options.end()) {
        error(words[i].range,
              std::string(torchrun ? "torchrun" : "deepspeed") +
                  " has no option '" + printable(words[i].text) + "'",
              "arguments of the script stand behind its name");
        return false;
      }
      Word value = word;
      ++i;
      if (known->takesValue) {
        if (equals != std::string::npos)
          value.text = word.text.substr(equals + 1);
        else if (i < words.size())
          value = words[i++];
        else {
          error(word.range, "'" + printable(word.text) + "' needs a value", "");
          return false;
        }
      }
      if (name == "nproc_per_node" || name == "num_gpus" ||
          name == "num_accelerators")
        takeCount(value, command.processesPerMachine, name);
      else if (name == "nnodes" || name == "num_nodes")
        takeCount(value, command.machines, name);
      if (failed)
        return false;
    }
    return readScript();
  }

  /// N, or MIN:MAX, which starts with MAX machines where they are there.
  void takeCount(const Word &word, std::optional<Setting<int64_t>> &count,
                 const std::string &name) {
    std::string text = word.text;
    if (size_t colon = text.find(':'); colon != std::string::npos)
      text = text.substr(colon + 1);
    if (text == "gpu" || text == "auto" || text == "cpu" || text == "xpu")
      return; // what the machine has
    int64_t value = 0;
    auto [end, bad] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (bad != std::errc() || end != text.data() + text.size() || value < 1 ||
        value > (int64_t(1) << 24)) {
      error(word.range,
            "'" + printable(word.text) + "' is no number of " +
                (name.starts_with("nn") || name == "num_nodes" ? "machines"
                                                               : "processes"),
            "");
      return;
    }
    const yaml::Mark &mark = word.range.begin;
    count = Setting<int64_t>{value,
                             Origin::Written,
                             "--" + name,
                             {commandLineName, mark.line, mark.column},
                             ""};
  }

  /// Megatron-LM's own scripts make model and mesh of their arguments, and
  /// those of accelerate may have arguments of such names.
  bool refuseMegatron() {
    if (command.launcher == Launcher::Accelerate)
      return false;
    const Word *split = nullptr;
    int sizes = 0;
    for (size_t at = i; at < words.size(); ++at) {
      std::string name = words[at].text.substr(0, words[at].text.find('='));
      std::replace(name.begin(), name.end(), '_', '-');
      if (name.starts_with("--") && name.ends_with("-model-parallel-size"))
        split = &words[at];
      sizes += name == "--num-layers" || name == "--hidden-size" ||
               name == "--num-attention-heads";
    }
    if (!split && sizes < 3)
      return false;
    error(split ? split->range : command.scriptRange,
          "'" + printable(command.script) + "' has arguments of Megatron-LM" +
              (split ? " (" + printable(split->text) + ")" : "") +
              ", of which no model and mesh are read",
          "write the sizes into megatron_lm_config of an accelerate YAML with "
          "distributed_type: MEGATRON_LM, and pass --model",
          notSupportedCode);
    return true;
  }

  /// The script and its arguments, from `i` on.
  bool readScript() {
    if (i == words.size()) {
      error({}, "the command names no script",
            "write it and its arguments at the end");
      return false;
    }
    command.script = words[i].text;
    command.scriptRange = words[i].range;
    const std::string name = fileName(command.script);
    ++i;
    if (refuseMegatron())
      return false;
    if (const size_t parent = command.script.find("axolotl.cli.train");
        parent != std::string::npos) {
      command.program = Program::Axolotl;
    } else if (name == "axolotl" || name == "trl" ||
               name == "llamafactory-cli" || name == "lmf") {
      --i;
      return readTool(name);
    } else if (command.script.find("llamafactory") != std::string::npos) {
      command.program = Program::LlamaFactory;
    } else {
      for (const char *task : {"sft", "dpo", "grpo", "kto", "reward"}) {
        // sft.py, run_sft.py, train_dpo.py, trl.scripts.sft
        const std::string stem =
            name.ends_with(".py") ? name.substr(0, name.size() - 3) : name;
        const std::string word = task;
        const size_t found = stem.rfind(word);
        const bool whole =
            found != std::string::npos &&
            (found == 0 ||
             !std::isalpha(static_cast<unsigned char>(stem[found - 1]))) &&
            (found + word.size() == stem.size() ||
             !std::isalpha(
                 static_cast<unsigned char>(stem[found + word.size()])));
        if (whole)
          command.task = task;
      }
    }
    command.arguments.assign(words.begin() + static_cast<long>(i), words.end());
    return true;
  }

  /// --accelerate_config of `words[i]`; false where the program stops.
  bool takeProfile(const std::string &name) {
    const bool trl = command.program == Program::Trl;
    const yaml::Range &place = words[i].range;
    const size_t equals = words[i].text.find('=');
    const bool together = equals != std::string::npos;
    if (!together && i + 1 == words.size()) {
      error(place, "'" + name + "' needs a value", "");
      return false;
    }
    Word value = together ? words[i] : words[i + 1];
    if (together)
      value.text = value.text.substr(equals + 1);
    // accelerate_config.py looks for the one word.
    if (trl && (together || name != "--accelerate_config")) {
      error(place,
            "trl reads no '" +
                printable(together ? name + "=VALUE" : name + " VALUE") +
                "': it goes to accelerate launch, which stops with it",
            "write --accelerate_config " + printable(value.text));
      return false;
    }
    if (trl && !command.profile.name.empty()) {
      error(place,
            "trl takes the first --accelerate_config alone, and accelerate "
            "launch stops with the second",
            "leave one of them out");
      return false;
    }
    command.profile = {value.text, commandLineName, value.range};
    i += together ? 1 : 2;
    return true;
  }

  /// trl, axolotl and llamafactory-cli, which launch themselves.
  bool readTool(const std::string &program) {
    const yaml::Range place = words[i].range;
    command.script = program;
    command.scriptRange = place;
    ++i;
    if (i == words.size()) {
      error(place, "'" + program + "' needs a command", "");
      return false;
    }
    const std::string task = words[i].text;
    command.program = program == "trl"       ? Program::Trl
                      : program == "axolotl" ? Program::Axolotl
                                             : Program::LlamaFactory;
    if (command.program != Program::Trl && task != "train") {
      error(words[i].range,
            "of " + program + "'s commands only 'train' trains a model", "");
      return false;
    }
    if (command.program == Program::Trl)
      command.task = task;
    ++i;
    std::vector<Word> rest;
    OptionParser parser = launchOptions();
    while (i < words.size()) {
      const std::string &text = words[i].text;
      const std::string name = text.substr(0, text.find('='));
      if (name == "--accelerate_config" || name == "--accelerate-config") {
        if (!takeProfile(name))
          return false;
        continue;
      }
      if (command.program == Program::Trl && text.starts_with("--config=")) {
        error(words[i].range,
              "trl reads no '--config=FILE': it goes to accelerate launch, "
              "which stops with it",
              "write --config " + printable(text.substr(9)));
        return false;
      }
      // trl hands flags of accelerate launch on; the trainer's go first.
      std::string plain = name.substr(std::min<size_t>(2, name.size()));
      std::replace(plain.begin(), plain.end(), '-', '_');
      const bool trainers =
          findArgument(Family::Transformers, "TrainingArguments", plain) ||
          !findArgument(Family::Accelerate, "launch", plain);
      if (command.program != Program::LlamaFactory && text.starts_with("--") &&
          !trainers && takeFlag(parser))
        continue;
      rest.push_back(words[i++]);
    }
    command.arguments = std::move(rest);
    return !failed;
  }

  /// What sets the number of processes where no flag does.
  void readProcessEnvironment() {
    auto take = [&](const char *name, std::optional<Setting<int64_t>> &count) {
      auto found = command.environment.find(name);
      if (!count && found != command.environment.end())
        takeCount(found->second, count, name);
    };
    if (command.program == Program::LlamaFactory) {
      take("NPROC_PER_NODE", command.processesPerMachine);
      take("NNODES", command.machines);
    }
    auto devices = command.environment.find("CUDA_VISIBLE_DEVICES");
    if (devices == command.environment.end() || command.processesPerMachine)
      return;
    command.processesPerMachine =
        processesOfDevices(devices->second, commandLineName);
  }
};

} // namespace

std::optional<Setting<int64_t>> processesOfDevices(const Word &devices,
                                                   const std::string &file) {
  const std::string &text = devices.text;
  if (text.empty())
    return std::nullopt;
  const yaml::Mark &mark = devices.range.begin;
  return Setting<int64_t>{1 + std::count(text.begin(), text.end(), ','),
                          Origin::Written,
                          "CUDA_VISIBLE_DEVICES",
                          {file, mark.line, mark.column},
                          "as many processes as devices that it names"};
}

std::optional<Command> readCommand(const std::vector<Word> &words,
                                   NodeStore &nodes, DiagnosticEngine &engine) {
  return CommandReader(words, nodes, engine).run();
}

} // namespace accel::scripts
