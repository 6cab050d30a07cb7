//===- UnreadWords.cpp - Words of columns that nothing reads --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A column is free text. Its words are of this vocabulary: what is read, and
// what tables write beside it without changing what a rank holds. A column
// without any of them says what is not understood.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/TextWords.h"

#include <set>
#include <string_view>

namespace accel::validate {

namespace {

using Vocabulary = std::set<std::string_view>;

/// Of numbers; a precision is one of these.
const Vocabulary precisionNames = {
    "bf",    "bf16", "bfloat16", "fp16",    "f16",  "float16", "half",
    "fp32",  "f32",  "float32",  "tf32",    "fp8",  "f8",      "float8",
    "mxfp8", "fp4",  "nvfp4",    "mxfp4",   "int8", "int4",    "nf4",
    "8bit",  "4bit", "16bit",    "32bit",   "16",   "32",      "8",
    "4",     "amp",  "mixed",    "pure",    "none", "no",      "default",
    "qlora", "auto", "bfloat",   "unknown", "fp",   "float",   "autocast",
    "nan",   "na",   "hybrid",   "e4m3",    "e5m2"};

/// How ranks and what they hold are divided.
const Vocabulary shardingNames = {"fsdp",
                                  "fsdpv",
                                  "hsdp",
                                  "fully",
                                  "full",
                                  "shard",
                                  "sharded",
                                  "sharding",
                                  "grad",
                                  "op",
                                  "hybrid",
                                  "zero",
                                  "stage",
                                  "ds",
                                  "z",
                                  "deepspeed",
                                  "ddp",
                                  "dp",
                                  "data",
                                  "dataparallel",
                                  "tp",
                                  "pp",
                                  "cp",
                                  "ep",
                                  "etp",
                                  "edp",
                                  "sp",
                                  "vp",
                                  "vpp",
                                  "tensor",
                                  "pipeline",
                                  "context",
                                  "expert",
                                  "sequence",
                                  "virtual",
                                  "stages",
                                  "interleaved",
                                  "interleave",
                                  "chunks",
                                  "f",
                                  "asynctp",
                                  "vanillatp",
                                  "dist",
                                  "distopt",
                                  "distributed",
                                  "optimizer",
                                  "optim",
                                  "offload",
                                  "offloading",
                                  "offloaded",
                                  "replicate",
                                  "replicated",
                                  "multi",
                                  "none",
                                  "no",
                                  "single",
                                  "n",
                                  "na",
                                  "not",
                                  "infinity",
                                  "device",
                                  "parallel",
                                  "parallelism",
                                  "cpu",
                                  "loss",
                                  "unsharded",
                                  "unknown",
                                  "auto",
                                  "default",
                                  "false",
                                  "true",
                                  "yes",
                                  "distributedoptimizer",
                                  "multigpu",
                                  "zb",
                                  "zbb",
                                  "zbv",
                                  "zbh",
                                  "bubble",
                                  "dualpipe",
                                  "gpipe"};

/// Beside either, or of who ran it and what was trained.
const Vocabulary otherNames = {
    // what the readers of words look for
    "accelerate", "accelerated", "activation", "activations", "adafactor",
    "adagrad", "adam", "adamw", "ademamix", "all", "alpha", "attention", "attn",
    "automodel", "autogptq", "awq", "base", "bit", "bits", "bitsandbytes",
    "bnb", "bridge", "c", "cce", "checkpoint", "checkpointing", "checkpoints",
    "compile", "compiled", "cpuadam", "cross", "cut", "deepep", "dora",
    "double", "down", "dq", "dropout", "emb", "embed", "embeddings", "entropy",
    "foak", "fused", "gate", "gptq", "gptqmodel", "gradient", "gradients",
    "head", "host", "hybridep", "in", "k", "kernel", "kernels", "layer",
    "layers", "liger", "linear", "lion", "lm", "load", "lora", "loss", "master",
    "mlp", "modules", "module", "moments", "muon", "nested", "non",
    "nonreentrant", "o", "on", "out", "paged", "param", "parameter",
    "parameters", "params", "peft", "pissa", "proj", "q", "qdora", "qkv",
    "qkvo", "qlora", "quant", "quantised", "quantized", "qv", "r", "rank",
    "recompute", "recomputation", "reentrant", "rmsprop", "rslora", "selective",
    "sgd", "states", "state", "target", "targets", "to", "tokens", "torch",
    "torchao", "up", "use", "v", "weight", "weights", "without", "ao", "dense",
    "fc", "query", "key", "value", "h", "llm", "deepspeedcpuadam", "lorafa",
    // trainers
    "alignment", "alpaca", "axolotl", "composer", "core", "fastchat", "factory",
    "fms", "foundry", "handbook", "hf", "hugging", "huggingface", "jax",
    "kempner", "kempnerforge", "launch", "launcher", "litgpt", "lightning",
    "llama", "llamafactory", "lmflow", "maxtext", "megatron", "mosaic",
    "mosaicml", "ms", "nemo", "primus", "script", "scripts", "sfttrainer",
    "sft", "simumax", "swift", "titan", "torchrun", "torchtitan", "torchtune",
    "trainer", "training", "transformers", "trl", "xtuner", "pytorch",
    "torchprime", "openrlhf", "ray", "slurm", "nvidia", "amd", "rocm", "cuda",
    "open", "instruct", "own", "loop", "custom", "code", "example", "examples",
    "recipe", "recipes", "run", "framework", "library", "plugin", "yaml",
    "config", "configuration", "container", "docker", "image", "version",
    "release", "main", "nightly", "dev", "commit", "rc", "beta", "post",
    // ways of training and sequences
    "finetune", "finetuning", "fine", "tuning", "tune", "tuned", "pretrain",
    "pretraining", "pre", "continued", "instruction", "chat", "supervised",
    "causal", "language", "model", "models", "parameterised", "packed",
    "packing", "unpacked", "padded", "padding", "free", "varlen", "synthetic",
    "mock", "dummy", "forced", "balance", "balanced", "routing", "baseline",
    "fast", "multinode", "node", "nodes", "gpu", "gpus", "rank", "ranks",
    "world", "size", "degree", "per", "way", "single", "and", "with", "by",
    "of", "the", "a", "for", "from", "via", "is", "as", "at", "only", "both",
    "using", "plus", "x", "w", "s", "b", "g", "i", "t", "p", "m", "e", "d",
    "not", "stated", "said", "sized", "type", "mode", "off", "enabled",
    "disabled", "entire", "whole", "standard", "vanilla", "async", "naive",
    // settings of wrappers and of casts
    "amp", "cast", "compute", "reduce", "reduction", "grads", "precision",
    "dtype", "gather", "allgather", "backward", "forward", "prefetch", "wrap",
    "wrapped", "transformer", "based", "policy", "orig", "strategy", "state",
    "dict", "reshard", "after", "mesh", "map", "overlap", "overlapped", "comm",
    "communication", "bucket", "buckets", "contiguous", "pin", "memory",
    "limit", "groups", "group", "across", "within", "node", "intra", "inter",
    "schedule", "micro", "batch", "v", "replicas", "replica",
    // scales of narrow operands
    "cs", "ds", "current", "delayed", "scaling", "scale", "scaled", "rowwise",
    "tensorwise", "blockwise", "block", "subchannel", "te", "engine", "cublas",
    "rceil", "rtn", "floor", "emulated", "dynamic", "static", "o", "native",
    "apex", "triton", "flash", "sdpa", "fa", "flashattention", "eager", "half",
    "min", "afab"};

/// Techniques that decide what a rank holds, and that are not modelled.
constexpr const char *techniques[] = {"ulysses", "gemini", "nvme",
                                      "mics",    "hpz",    "qgz",
                                      "qwz",     "spmd",   "deepcompile"};

bool isNumber(const std::string &word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), digit);
}

/// "23e00ed", a commit.
bool isCommit(const std::string &word) {
  return word.size() >= 7 && std::any_of(word.begin(), word.end(), digit) &&
         word.find_first_not_of("0123456789abcdef") == word.npos;
}

/// The letters of "tp8pp2" are "tp" and "pp".
bool isKnown(const std::string &word) {
  auto in = [](const std::string &name) {
    return precisionNames.count(name) || shardingNames.count(name) ||
           otherNames.count(name);
  };
  if (in(word) || isCommit(word))
    return true;
  std::string letters;
  for (const char c : word + '0') {
    if (!digit(c)) {
      letters += c;
      continue;
    }
    if (!letters.empty() && !in(letters))
      return false;
    letters.clear();
  }
  return true;
}

/// A word with its digits or without them.
bool names(const Vocabulary &vocabulary, const std::string &word) {
  const std::string letters = word.substr(0, word.find_first_of("0123456789"));
  return vocabulary.count(word) || vocabulary.count(letters);
}

} // namespace

UnreadWords unreadWords(const std::string &column, const std::string &text) {
  UnreadWords result;
  const std::string spaced = plainSeparators(text);
  const std::vector<std::string> words = wordsOf(spaced);
  const Vocabulary *own = column == "precision"  ? &precisionNames
                          : column == "sharding" ? &shardingNames
                                                 : nullptr;
  const bool understood =
      !own || words.empty() ||
      std::any_of(words.begin(), words.end(),
                  [&](const std::string &word) { return names(*own, word); });
  if (!understood) {
    result.refused =
        "'" + text + "' of the column " + column + " is not understood";
    return result;
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i];
    if (isOneOf(word, {"no", "without"}))
      ++i; // what was not done, of whatever name
    else if (std::any_of(std::begin(techniques), std::end(techniques),
                         [&](const char *one) { return word == one; }) ||
             (word == "ring" && i + 1 < words.size() &&
              startsOneOf(words[i + 1], {"attention", "attn"})))
      result.refused = "'" + word + "' is not modelled";
    else if (!isKnown(word)) {
      // A degree of whatever is named so.
      const bool degree = own && i + 1 < words.size() &&
                          isNumber(words[i + 1]) && words[i + 1] != "1" &&
                          has(spaced, (word + "=" + words[i + 1]).c_str());
      if (degree)
        result.refused = "'" + word + "=" + words[i + 1] + "' of the column " +
                         column + " is not understood";
      else
        result.others.push_back(word);
    }
  }
  return result;
}

} // namespace accel::validate
