//===- KeyData.cpp - The tables behind KeyTable.h -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Data only. `test/parity/keys_cases.py` compares it with the dataclasses and
// the command line of the installed Accelerate.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/KeyData.h"

using namespace accel;

namespace {

using V = AccelerateVersion;
using enum ValueType;
using enum DefaultOwner;

constexpr V never = neverAccelerate;
constexpr const char *top = "", *fsdp = "fsdp_config",
                     *deepspeed = "deepspeed_config",
                     *megatron = "megatron_lm_config",
                     *parallelism = "parallelism_config", *fp8 = "fp8_config",
                     *mpirun = "mpirun_config", *dynamo = "dynamo_config",
                     *ipex = "ipex_config", *tp = "tp_config",
                     *sagemaker = sagemakerSection;

// clang-format off

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

constexpr EnumValue environmentValues[] = {
    {"LOCAL_MACHINE", "This machine, or machines that you reach yourself"},
    {"AMAZON_SAGEMAKER", "Jobs on Amazon SageMaker"},
};
constexpr EnumInfo environments{.name = "compute environment", .values = environmentValues};

constexpr EnumValue distributedValues[] = {
    {"NO", "One process"},
    {"MULTI_CPU", "Data parallel on CPUs"},
    {"MULTI_GPU", "Data parallel on GPUs"},
    {"MULTI_NPU", "Data parallel on Ascend NPUs", {0, 21}},
    {"MULTI_MLU", "Data parallel on Cambricon MLUs", {0, 29}},
    {"MULTI_SDAA", "Data parallel on SDAA devices", {1, 5}},
    {"MULTI_MUSA", "Data parallel on Moore Threads GPUs", {0, 33}},
    {"MULTI_XPU", "Data parallel on Intel GPUs", {0, 20}},
    {"MULTI_HPU", "Data parallel on Gaudi HPUs", {1, 5}},
    {"MULTI_NEURON", "Data parallel on Trainium", {1, 13}},
    {"DEEPSPEED", "DeepSpeed ZeRO"},
    {"FSDP", "PyTorch's fully sharded data parallelism"},
    {"XLA", "TPUs and other XLA devices", {0, 28}},
    {"MEGATRON_LM", "Megatron-LM", {0, 14}},
    {"TPU", "TPUs; XLA since 0.28", {0, 2}, {0, 28}},
    {"MPS", "One Apple GPU; NO since 0.20", {0, 12}, {0, 20}},
    {"TP", "Tensor parallelism; FSDP with a parallelism_config since 1.10", {1, 4}, {1, 10}},
};
constexpr EnumInfo distributedTypes{.name = "distributed_type", .values = distributedValues};

constexpr EnumValue sagemakerTypeValues[] = {
    {"NO", "One process"},
    {"DATA_PARALLEL", "SageMaker's distributed data parallelism"},
    {"MODEL_PARALLEL", "SageMaker's model parallelism"},
};
constexpr EnumInfo sagemakerTypes{.name = "distributed_type", .values = sagemakerTypeValues};

constexpr EnumValue precisionValues[] = {
    {"no", "Parameters keep the dtype in which they were loaded"},
    {"fp16", "Compute in float16 with loss scaling"},
    {"bf16", "Compute in bfloat16"},
    {"fp8", "Linear layers in 8 bits, the rest in bfloat16", {0, 17}},
};
constexpr EnumInfo precisions{.name = "mixed_precision", .values = precisionValues, .ignoreCase = true};

constexpr EnumValue fsdpVersionValues[] = {
    {"1", "FullyShardedDataParallel"},
    {"2", "fully_shard; needs torch 2.6"},
};
constexpr EnumInfo fsdpVersions{.name = "FSDP version", .values = fsdpVersionValues, .integers = true};

constexpr EnumValue shardingValues[] = {
    {"FULL_SHARD", "Parameters, gradients and optimizer state are sharded (ZeRO 3)"},
    {"SHARD_GRAD_OP", "Parameters stay gathered between forward and backward (ZeRO 2)"},
    {"NO_SHARD", "Nothing is sharded: data parallelism"},
    {"HYBRID_SHARD", "FULL_SHARD inside of a machine, replicated across machines", {0, 21}},
    {"HYBRID_SHARD_ZERO2", "SHARD_GRAD_OP inside of a machine, replicated across machines", {0, 21}},
};
constexpr EnumInfo shardings{.name = "sharding strategy", .values = shardingValues, .ignoreCase = true, .numbered = true};

constexpr EnumValue wrapValues[] = {
    {"TRANSFORMER_BASED_WRAP", "One unit for each layer of the named classes"},
    {"SIZE_BASED_WRAP", "One unit for each module with enough parameters"},
    {"NO_WRAP", "The whole model is one unit"},
};
constexpr EnumInfo wraps{.name = "wrap policy", .values = wrapValues, .ignoreCase = true};

constexpr EnumValue prefetchValues[] = {
    {"BACKWARD_PRE", "Gather the next unit before the current unit's backward"},
    {"BACKWARD_POST", "Gather the next unit after the current unit's backward"},
    {"NO_PREFETCH", "Gather a unit when it is needed"},
};
constexpr EnumInfo prefetches{.name = "backward prefetch", .values = prefetchValues, .ignoreCase = true, .numbered = true};

constexpr EnumValue stateDictValues[] = {
    {"FULL_STATE_DICT", "One whole file, gathered on rank 0"},
    {"LOCAL_STATE_DICT", "Each rank's flat shards as they are; FSDP 1 only"},
    {"SHARDED_STATE_DICT", "A distributed checkpoint of each rank's shards"},
};
constexpr EnumInfo stateDicts{.name = "state dict type", .values = stateDictValues, .ignoreCase = true, .numbered = true};

constexpr EnumValue zeroStageValues[] = {
    {"0", "No sharding"},
    {"1", "Optimizer state is sharded"},
    {"2", "Optimizer state and gradients are sharded"},
    {"3", "Optimizer state, gradients and parameters are sharded"},
};
constexpr EnumInfo zeroStages{.name = "ZeRO stage", .values = zeroStageValues, .integers = true};

constexpr EnumValue offloadValues[] = {
    {"none", "Stays on the device"},
    {"cpu", "In host memory"},
    {"nvme", "On a disk; ZeRO stage 3"},
};
constexpr EnumInfo offloads{.name = "offload device", .values = offloadValues, .ignoreCase = true};

constexpr EnumValue multinodeValues[] = {
    {"pdsh", "DeepSpeed's launcher over pdsh"},
    {"standard", "torchrun on each machine"},
    {"openmpi", "DeepSpeed's launcher over Open MPI"},
    {"mvapich", "DeepSpeed's launcher over MVAPICH"},
    {"mpich", "DeepSpeed's launcher over MPICH", {0, 23}},
    {"nossh", "DeepSpeed's launcher, started on each machine", {1, 6}},
    {"slurm", "DeepSpeed's launcher over Slurm", {1, 6}},
};
constexpr EnumInfo multinodes{.name = "multi-node launcher", .values = multinodeValues};

constexpr EnumValue granularityValues[] = {
    {"full", "Whole layers are recomputed"},
    {"selective", "The core of attention is recomputed"},
};
constexpr EnumInfo granularities{.name = "recompute granularity", .values = granularityValues};
constexpr EnumValue methodValues[] = {
    {"uniform", "Layers in groups of equal size"},
    {"block", "The first layers of each stage"},
};
constexpr EnumInfo methods{.name = "recompute method", .values = methodValues};

constexpr EnumValue commValues[] = {
    {"allgather", "Keys and values of all ranks are gathered"},
    {"alltoall", "Keys and values go around"},
};
constexpr EnumInfo comms{.name = "context-parallel strategy", .values = commValues};
constexpr EnumValue cpBackendValues[] = {{"torch", "torch's context parallelism, with FSDP 2"}};
constexpr EnumInfo cpBackends{.name = "context-parallel backend", .values = cpBackendValues};
constexpr EnumValue spBackendValues[] = {{"deepspeed", "DeepSpeed's Ulysses"}};
constexpr EnumInfo spBackends{.name = "sequence-parallel backend", .values = spBackendValues};
constexpr EnumValue spAttentionValues[] = {
    {"flash_attention_2", "The flash-attn package, version 2"},
    {"flash_attention_3", "The flash-attn package, version 3"},
    {"sdpa", "torch's scaled dot product attention"},
};
constexpr EnumInfo spAttentions{.name = "attention implementation", .values = spAttentionValues, .open = true};

constexpr EnumValue fp8BackendValues[] = {
    {"TE", "NVIDIA Transformer Engine"},
    {"MSAMP", "Microsoft MS-AMP"},
    {"AO", "torchao", {1, 9}},
};
constexpr EnumInfo fp8Backends{.name = "fp8 backend", .values = fp8BackendValues, .ignoreCase = true};
constexpr EnumValue fp8FormatValues[] = {
    {"HYBRID", "E4M3 in the forward, E5M2 in the backward"},
    {"E4M3", "4 bits of exponent, 3 of mantissa"},
    {"E5M2", "5 bits of exponent, 2 of mantissa", {1, 8}},
};
constexpr EnumInfo fp8Formats{.name = "fp8 format", .values = fp8FormatValues};
constexpr EnumValue amaxValues[] = {
    {"max", "The maximum over the history"},
    {"most_recent", "The last value"},
};
constexpr EnumInfo amaxes{.name = "amax algorithm", .values = amaxValues};
constexpr EnumValue optLevelValues[] = {
    {"O1", "Gradients and their reduction in 8 bits"},
    {"O2", "The first moment of the optimizer in 8 bits as well"},
};
constexpr EnumInfo optLevels{.name = "MS-AMP level", .values = optLevelValues};

constexpr EnumValue dynamoValues[] = {
    {"NO", "Not compiled", {0, 15}},
    {"EAGER", "Captured, then run by PyTorch", {0, 15}},
    {"AOT_EAGER", "Captured with its backward, then run by PyTorch", {0, 15}},
    {"INDUCTOR", "Compiled by TorchInductor", {0, 15}},
    {"NVFUSER", "nvFuser with TorchScript", {0, 15}, {0, 24}},
    {"AOT_NVFUSER", "nvFuser with AotAutograd", {0, 15}, {0, 24}},
    {"AOT_CUDAGRAPHS", "CUDA graphs with AotAutograd", {0, 15}, {0, 24}},
    {"AOT_TS_NVFUSER", "nvFuser with AotAutograd and TorchScript", {0, 24}},
    {"NVPRIMS_NVFUSER", "nvFuser with PrimTorch", {0, 24}},
    {"CUDAGRAPHS", "CUDA graphs", {0, 24}},
    {"OFI", "TorchScript's optimize_for_inference", {0, 15}},
    {"FX2TRT", "TensorRT, for inference", {0, 15}},
    {"ONNXRT", "ONNX Runtime", {0, 15}},
    {"TENSORRT", "TensorRT by way of ONNX", {0, 24}},
    {"AOT_TORCHXLA_TRACE_ONCE", "PyTorch/XLA, for training", {0, 32}},
    {"TORCHXLA_TRACE_ONCE", "PyTorch/XLA, for inference", {0, 32}},
    {"IPEX", "Intel's extension, for inference on CPUs", {0, 15}, {1, 13}},
    {"TVM", "Apache TVM, for inference", {0, 24}},
    {"HPU_BACKEND", "Gaudi", {1, 5}},
    {"NEURON", "Trainium", {1, 15}},
};
constexpr EnumInfo dynamos{.name = "dynamo backend", .values = dynamoValues, .ignoreCase = true};
constexpr EnumValue modeValues[] = {
    {"default", "Balance of compile time and speed"},
    {"reduce-overhead", "CUDA graphs"},
    {"max-autotune", "Tries many kernels"},
};
constexpr EnumInfo modes{.name = "torch.compile mode", .values = modeValues, .open = true};

constexpr EnumValue rdzvValues[] = {
    {"static", "Machine 0 waits for the others"},
    {"c10d", "torch's own store"},
    {"etcd", "An etcd server"},
    {"etcd-v2", "An etcd server"},
};
constexpr EnumInfo rdzvs{.name = "rendezvous backend", .values = rdzvValues, .open = true};

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//

constexpr SectionInfo sections[] = {
    {top, {0, 2}, never, "What starts where"},
    {fsdp, {0, 7}, never, "Fully sharded data parallelism", "fsdp_", "", "FSDP"},
    {deepspeed, {0, 4}, never, "DeepSpeed", "", "", "DEEPSPEED"},
    {megatron, {0, 14}, never, "Megatron-LM", "", "megatron_lm_", "MEGATRON_LM"},
    {parallelism, {1, 10}, never, "Sizes of the mesh of devices", "", "parallelism_config_"},
    {fp8, {0, 34}, never, "Training in 8 bits; read with mixed_precision fp8", "fp8_"},
    {mpirun, {0, 28}, never, "Starting CPU processes by mpirun", "", "mpirun_", "MULTI_CPU"},
    {dynamo, {0, 17}, never, "torch.compile", "dynamo_"},
    {ipex, {0, 19}, {1, 13}, "Intel's extension for PyTorch"},
    {tp, {1, 4}, {1, 7}, "Tensor parallelism, before parallelism_config", "", "", "TP"},
    {sagemaker, {0, 2}, never, "Files with compute_environment AMAZON_SAGEMAKER"},
};

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

constexpr KeyInfo keys[] = {
    {top, "compute_environment", {0, 2}, never, Choice, "Where the job runs", &environments, {{"LOCAL_MACHINE", Loader}}},
    {top, "distributed_type", {0, 2}, never, Choice, "How processes share the work; required", &distributedTypes},
    {top, "mixed_precision", {0, 6}, never, Choice, "The dtype of computation; quote 'no'", &precisions, {{"'no'", Loader}}, {.nullable = true}},
    {top, "fp16", {0, 2}, never, Boolean, "mixed_precision fp16, as files before 0.6 say it", nullptr, {{"false", Loader}}, {.nullable = true, .instead = "mixed_precision"}},
    {top, "dynamo_backend", {0, 15}, never, Choice, "dynamo_config's dynamo_backend, as files of 0.15 and 0.16 say it", &dynamos, {{"'NO'", Loader}}, {.instead = "dynamo_config"}},
    {top, "use_cpu", {0, 6}, never, Boolean, "Run on the CPU although there is a GPU; one process or MULTI_CPU only", nullptr, {{"false", Loader}}},
    {top, "debug", {0, 22}, never, Boolean, "Check the shapes of collectives (slow)", nullptr, {{"false", Loader}}, {.nullable = true}},
    {top, "num_processes", {0, 2}, never, Integer, "Processes in total, over all machines", nullptr, {{"-1", Loader, {0, 34}}}, {.minimum = 1}},
    {top, "num_machines", {0, 2}, never, Integer, "Machines", nullptr, {{"1", Loader}}, {.minimum = 1}},
    {top, "machine_rank", {0, 2}, never, Integer, "Which machine this is, from 0", nullptr, {{"0", Loader}}, {.nullable = true, .minimum = 0}},
    {top, "main_process_ip", {0, 2}, never, String, "Address of machine 0; needed with several machines", nullptr, {}, {.nullable = true}},
    {top, "main_process_port", {0, 2}, never, Integer, "Port on machine 0; 0 takes a free one", nullptr, {{"29500", Launcher}}, {.nullable = true, .minimum = 0}},
    {top, "main_training_function", {0, 2}, never, String, "The function to run on each TPU core", nullptr, {{"main", Loader}}, {.nullable = true}},
    {top, "gpu_ids", {0, 13}, never, String, "Devices of this machine, such as '0,1', or all", nullptr, {{"all", Launcher}}, {.nullable = true}},
    {top, "rdzv_backend", {0, 13}, never, Choice, "How machines find each other", &rdzvs, {{"static", Loader}}, {.nullable = true, .unreadSince = {0, 20}}},
    {top, "same_network", {0, 13}, never, Boolean, "All machines are in one network", nullptr, {{"false", Loader}}, {.nullable = true, .unreadSince = {0, 14}}},
    {top, "enable_cpu_affinity", {0, 29}, never, Boolean, "Bind each process to the CPUs near its GPU", nullptr, {{"false", Loader}}, {.nullable = true, .unreadSince = {0, 29}}},
    {top, "downcast_bf16", {0, 12}, never, Boolean, "On TPUs, cast doubles as well", nullptr, {{"false", Loader}}, {.nullable = true, .unreadSince = {0, 12}}},
    {top, "tpu_name", {0, 14}, never, String, "Name of the TPU pod", nullptr, {}, {.nullable = true}},
    {top, "tpu_zone", {0, 14}, never, String, "Zone of the TPU pod", nullptr, {}, {.nullable = true}},
    {top, "tpu_use_cluster", {0, 17}, never, Boolean, "Start on a TPU pod", nullptr, {{"false", Loader}}, {.nullable = true}},
    {top, "tpu_use_sudo", {0, 17}, never, Boolean, "Use sudo on the pod", nullptr, {{"false", Loader}}, {.nullable = true, .unreadSince = {0, 17}}},
    {top, "command_file", {0, 14}, never, String, "Script to run on each pod first", nullptr, {}, {.nullable = true}},
    {top, "commands", {0, 14}, never, StringList, "Commands to run on each pod first", nullptr, {}, {.nullable = true}},
    {top, "tpu_vm", {0, 17}, never, StringList, "Names of the pod's machines", nullptr, {}, {.nullable = true}},
    {top, "tpu_env", {0, 17}, never, StringList, "Environment of the pod's machines", nullptr, {}, {.nullable = true}},
    {top, "dynamo_config", {0, 17}, never, Mapping, "torch.compile", nullptr, {}, {.nullable = true}},
    {top, "fsdp_config", {0, 7}, never, Mapping, "Fully sharded data parallelism", nullptr, {}, {.nullable = true}},
    {top, "deepspeed_config", {0, 4}, never, Mapping, "DeepSpeed", nullptr, {}, {.nullable = true}},
    {top, "megatron_lm_config", {0, 14}, never, Mapping, "Megatron-LM", nullptr, {}, {.nullable = true}},
    {top, "mpirun_config", {0, 28}, never, Mapping, "Starting CPU processes by mpirun", nullptr, {}, {.nullable = true}},
    {top, "fp8_config", {0, 34}, never, Mapping, "Training in 8 bits", nullptr, {}, {.nullable = true, .readSince = {1, 4}}},
    {top, "parallelism_config", {1, 10}, never, Mapping, "Sizes of the mesh of devices", nullptr, {}, {.nullable = true}},
    {top, "ipex_config", {0, 19}, {1, 13}, Mapping, "Intel's extension for PyTorch", nullptr, {}, {.nullable = true}},
    {top, "tp_config", {1, 4}, {1, 7}, Mapping, "Tensor parallelism", nullptr, {}, {.nullable = true}},

    {fsdp, "fsdp_version", {1, 6}, never, Choice, "Which implementation of FSDP", &fsdpVersions, {{"1", Launcher, {1, 6}}}},
    {fsdp, "fsdp_sharding_strategy", {0, 12}, never, Choice, "What is sharded; FSDP 1 only", &shardings, {{"1", Launcher, {0, 2}, {0, 26}}, {"FULL_SHARD", Launcher, {0, 26}}}},
    {fsdp, "fsdp_reshard_after_forward", {1, 6}, never, Boolean, "Free parameters after the forward and gather them again; FSDP 2 only", nullptr, {{"true", Launcher, {1, 6}}}},
    {fsdp, "fsdp_offload_params", {0, 12}, never, Boolean, "Keep parameters, gradients and optimizer state in host memory", nullptr, {{"false", Launcher}}},
    {fsdp, "fsdp_auto_wrap_policy", {0, 11}, never, Choice, "What becomes a unit", &wraps, {{"NO_WRAP", Plugin}}, {.nullable = true}},
    {fsdp, "fsdp_transformer_layer_cls_to_wrap", {0, 12}, never, String, "Class names, joined by commas without blanks; unset: the model's _no_split_modules", nullptr, {}, {.nullable = true}},
    {fsdp, "fsdp_min_num_params", {0, 12}, never, Integer, "SIZE_BASED_WRAP's least number of parameters; all digits, not 1e8", nullptr, {{"100000000.0", Launcher, {0, 2}, {1, 13}}, {"100000000", Launcher, {1, 13}}}},
    {fsdp, "fsdp_backward_prefetch", {0, 26}, never, Choice, "When the backward gathers the next unit; FSDP 1 only", &prefetches, {{"NO_PREFETCH", Plugin}}, {.nullable = true}},
    {fsdp, "fsdp_backward_prefetch_policy", {0, 11}, {1, 0}, Choice, "fsdp_backward_prefetch before 0.26; read until 0.34", &prefetches, {{"NO_PREFETCH", Plugin}}, {.nullable = true, .instead = "fsdp_backward_prefetch"}},
    {fsdp, "fsdp_forward_prefetch", {0, 21}, never, Boolean, "The forward gathers the next unit early; FSDP 1 only", nullptr, {{"false", Launcher}}},
    {fsdp, "fsdp_state_dict_type", {0, 12}, never, Choice, "How checkpoints are written", &stateDicts, {{"FULL_STATE_DICT", Plugin}}, {.nullable = true}},
    {fsdp, "fsdp_use_orig_params", {0, 21}, never, Boolean, "Keep the original parameters; FSDP 1 only", nullptr, {{"false", Launcher, {0, 21}, {0, 25}}, {"true", Launcher, {0, 25}}}},
    {fsdp, "fsdp_sync_module_states", {0, 21}, never, Boolean, "Rank 0 broadcasts the weights; FSDP 1 only", nullptr, {{"false", Launcher, {0, 21}, {0, 22}}, {"true", Launcher, {0, 22}}}},
    {fsdp, "fsdp_cpu_ram_efficient_loading", {0, 24}, never, Boolean, "Rank 0 sends the weights to the others", nullptr, {{"true", Launcher, {0, 24}}}},
    {fsdp, "fsdp_activation_checkpointing", {0, 31}, never, Boolean, "Recompute the wrapped layers in the backward", nullptr, {{"false", Launcher}}},
    {fsdp, "fsdp_activation_checkpointing_offload", {1, 15}, never, Boolean, "Keep the inputs of recomputed layers in host memory; FSDP 2 only", nullptr, {{"false", Launcher}}},
    {fsdp, "fsdp_ignored_modules", {1, 10}, never, String, "A regex that must match the whole name of a module that FSDP leaves alone", nullptr, {}, {.nullable = true}},
    {fsdp, "sharding_strategy", {0, 7}, {0, 12}, Choice, "fsdp_sharding_strategy in 0.11; a number", &shardings, {{"1", Launcher}}, {.instead = "fsdp_sharding_strategy"}},
    {fsdp, "offload_params", {0, 7}, {0, 12}, Boolean, "fsdp_offload_params in 0.11", nullptr, {{"false", Launcher}}, {.instead = "fsdp_offload_params"}},
    {fsdp, "min_num_params", {0, 7}, {0, 12}, Integer, "fsdp_min_num_params in 0.11", nullptr, {{"100000000.0", Launcher}}, {.instead = "fsdp_min_num_params"}},
    {fsdp, "transformer_layer_cls_to_wrap", {0, 11}, {0, 12}, String, "fsdp_transformer_layer_cls_to_wrap in 0.11", nullptr, {}, {.nullable = true, .instead = "fsdp_transformer_layer_cls_to_wrap"}},

    {deepspeed, "zero_stage", {0, 4}, never, Choice, "What is sharded", &zeroStages, {{"2", Plugin}}, {.nullable = true}},
    {deepspeed, "offload_optimizer_device", {0, 4}, never, Choice, "Where optimizer state lives; stage 2 and 3", &offloads, {{"none", Plugin}}, {.nullable = true}},
    {deepspeed, "offload_param_device", {0, 10}, never, Choice, "Where parameters live; stage 3", &offloads, {{"none", Plugin}}, {.nullable = true}},
    {deepspeed, "offload_optimizer_nvme_path", {0, 20}, never, String, "Folder for optimizer state; never reaches the job", nullptr, {{"none", Plugin}}, {.nullable = true, .unreadSince = {0, 20}}},
    {deepspeed, "offload_param_nvme_path", {0, 20}, never, String, "Folder for parameters; never reaches the job", nullptr, {{"none", Plugin}}, {.nullable = true, .unreadSince = {0, 20}}},
    {deepspeed, "gradient_accumulation_steps", {0, 4}, never, Integer, "Micro-batches in a step", nullptr, {{"1", Plugin, {0, 2}, {0, 23}}, {"auto", Plugin, {0, 23}}}, {.nullable = true, .minimum = 1}},
    {deepspeed, "gradient_clipping", {0, 10}, never, Number, "Largest norm of the gradient", nullptr, {{"none", Plugin, {0, 2}, {0, 30}}, {"auto", Plugin, {0, 30}}}, {.nullable = true}},
    {deepspeed, "zero3_init_flag", {0, 10}, never, Boolean, "Build the model sharded; unset: with stage 3", nullptr, {}, {.nullable = true}},
    {deepspeed, "zero3_save_16bit_model", {0, 10}, never, Boolean, "save_model writes whole 16-bit weights; stage 3 only", nullptr, {{"false", Plugin}}, {.nullable = true}},
    {deepspeed, "deepspeed_config_file", {0, 10}, never, String, "A DeepSpeed JSON file, which replaces the keys above", nullptr, {}, {.nullable = true}},
    {deepspeed, "deepspeed_hostfile", {0, 11}, never, String, "Machines and slots; with several machines", nullptr, {}, {.nullable = true}},
    {deepspeed, "deepspeed_exclusion_filter", {0, 11}, never, String, "Machines and devices to leave out", nullptr, {}, {.nullable = true}},
    {deepspeed, "deepspeed_inclusion_filter", {0, 11}, never, String, "Machines and devices to use", nullptr, {}, {.nullable = true}},
    {deepspeed, "deepspeed_multinode_launcher", {0, 11}, never, Choice, "How processes start on several machines", &multinodes, {{"pdsh", Launcher}}, {.nullable = true}},
    {deepspeed, "deepspeed_moe_layer_cls_names", {0, 30}, never, String, "Class names of mixture-of-experts layers, joined by commas; stage 3", nullptr, {}, {.nullable = true}},

    {megatron, "megatron_lm_tp_degree", {0, 14}, never, Integer, "Tensor parallel ranks", nullptr, {{"1", Launcher}}, {.minimum = 1}},
    {megatron, "megatron_lm_pp_degree", {0, 14}, never, Integer, "Pipeline stages", nullptr, {{"1", Launcher}}, {.minimum = 1}},
    {megatron, "megatron_lm_num_micro_batches", {0, 14}, never, Integer, "Micro-batches in a step", nullptr, {{"1", Plugin}}, {.nullable = true, .minimum = 1}},
    {megatron, "megatron_lm_sequence_parallelism", {0, 14}, never, Boolean, "Shard activations outside of tensor-parallel layers along the sequence", nullptr, {{"false", Plugin}}, {.nullable = true}},
    {megatron, "megatron_lm_recompute_activations", {0, 14}, never, Boolean, "Recompute the core of attention", nullptr, {{"false", Plugin}}, {.nullable = true}},
    {megatron, "megatron_lm_use_distributed_optimizer", {0, 14}, never, Boolean, "Shard optimizer state over data-parallel ranks", nullptr, {{"false", Plugin}}, {.nullable = true}},
    {megatron, "megatron_lm_gradient_clipping", {0, 14}, never, Number, "Largest norm of the gradient; 0: none", nullptr, {{"1.0", Launcher}}},
    {megatron, "megatron_lm_use_custom_fsdp", {1, 13}, never, Boolean, "Megatron's own FSDP", nullptr, {{"false", Launcher}}},
    {megatron, "megatron_lm_no_load_optim", {1, 13}, never, Boolean, "Do not load optimizer state", nullptr, {{"false", Launcher}}, {.nullable = true}},
    {megatron, "megatron_lm_no_save_optim", {1, 13}, never, Boolean, "Do not save optimizer state", nullptr, {{"false", Launcher}}, {.nullable = true}},
    {megatron, "megatron_lm_eod_mask_loss", {1, 13}, never, Boolean, "No loss on end-of-document tokens", nullptr, {{"false", Launcher}}, {.nullable = true}},
    {megatron, "megatron_lm_overlap_cpu_optimizer_d2h_h2d", {1, 13}, never, Boolean, "Overlap copies of the offloaded optimizer", nullptr, {{"false", Launcher}}, {.nullable = true}},
    {megatron, "megatron_lm_optimizer_cpu_offload", {1, 13}, never, Boolean, "Optimizer state in host memory", nullptr, {{"false", Launcher}}, {.nullable = true}},
    {megatron, "megatron_lm_use_precision_aware_optimizer", {1, 13}, never, Boolean, "Optimizer state in lower precision", nullptr, {{"false", Launcher}}, {.nullable = true}},
    {megatron, "megatron_lm_decoder_last_pipeline_num_layers", {1, 13}, never, Integer, "Layers of the last stage; unset: as many as the others", nullptr, {}, {.nullable = true, .minimum = 1}},
    {megatron, "megatron_lm_recompute_granularity", {1, 13}, never, Choice, "What is recomputed", &granularities, {{"full", Plugin, {1, 13}}}, {.nullable = true}},
    {megatron, "megatron_lm_recompute_method", {1, 13}, never, Choice, "Which layers are recomputed", &methods, {{"uniform", Plugin, {1, 13}}}, {.nullable = true}},
    {megatron, "megatron_lm_recompute_num_layers", {1, 13}, never, Integer, "How many layers are recomputed", nullptr, {{"1", Plugin, {1, 13}}}, {.nullable = true, .minimum = 1}},
    {megatron, "megatron_lm_attention_backend", {1, 13}, never, Boolean, "Flash attention", nullptr, {{"true", Plugin, {1, 13}}}, {.nullable = true}},
    {megatron, "megatron_lm_expert_model_parallel_size", {1, 13}, never, Integer, "Ranks that share the experts", nullptr, {{"1", Plugin, {1, 13}}}, {.nullable = true, .minimum = 1}},
    {megatron, "megatron_lm_context_parallel_size", {1, 13}, never, Integer, "Ranks that share a sequence", nullptr, {{"2", Plugin, {1, 13}}}, {.nullable = true, .minimum = 1}},
    {megatron, "megatron_lm_attention_dropout", {1, 13}, never, Number, "Dropout of attention", nullptr, {{"0.0", Plugin, {1, 13}}}, {.nullable = true}},
    {megatron, "megatron_lm_hidden_dropout", {1, 13}, never, Number, "Dropout of hidden states", nullptr, {{"0.0", Plugin, {1, 13}}}, {.nullable = true}},
    {megatron, "megatron_lm_attention_softmax_in_fp32", {1, 13}, never, Boolean, "Softmax of attention in fp32", nullptr, {{"true", Plugin, {1, 13}}}, {.nullable = true}},
    {megatron, "megatron_lm_expert_tensor_parallel_size", {1, 13}, never, Integer, "Tensor parallel ranks of an expert", nullptr, {{"1", Plugin, {1, 13}}}, {.nullable = true, .minimum = 1}},
    {megatron, "megatron_lm_calculate_per_token_loss", {1, 13}, never, Boolean, "Mean of the loss over tokens, not micro-batches", nullptr, {{"true", Plugin, {1, 13}}}, {.nullable = true}},
    {megatron, "megatron_lm_use_rotary_position_embeddings", {1, 13}, never, Boolean, "Rotary position embeddings", nullptr, {{"true", Plugin, {1, 13}}}, {.nullable = true}},

    {parallelism, "parallelism_config_dp_replicate_size", {1, 10}, never, Integer, "Ranks that replicate parameters", nullptr, {{"1", Launcher}}, {.minimum = 1}},
    {parallelism, "parallelism_config_dp_shard_size", {1, 10}, never, Integer, "Ranks that shard parameters", nullptr, {{"1", Launcher}}, {.minimum = 1}},
    {parallelism, "parallelism_config_tp_size", {1, 10}, never, Integer, "Tensor parallel ranks", nullptr, {{"1", Launcher}}, {.minimum = 1}},
    {parallelism, "parallelism_config_cp_size", {1, 10}, never, Integer, "Ranks that share a sequence in attention", nullptr, {{"1", Launcher}}, {.minimum = 1}},
    {parallelism, "parallelism_config_cp_comm_strategy", {1, 10}, never, Choice, "How context-parallel ranks exchange keys and values", &comms, {{"allgather", Launcher}}},
    {parallelism, "parallelism_config_cp_backend", {1, 12}, never, Choice, "Who does context parallelism", &cpBackends, {{"torch", Launcher}}},
    {parallelism, "parallelism_config_sp_size", {1, 12}, never, Integer, "Ranks that share a sequence (Ulysses)", nullptr, {{"1", Launcher}}, {.minimum = 1}},
    {parallelism, "parallelism_config_sp_backend", {1, 12}, never, Choice, "Who does sequence parallelism", &spBackends, {{"deepspeed", Launcher}}},
    {parallelism, "parallelism_config_sp_seq_length", {1, 12}, never, Integer, "Length of every sequence, if it is fixed", nullptr, {}, {.nullable = true, .minimum = 1}},
    {parallelism, "parallelism_config_sp_seq_length_is_variable", {1, 12}, never, Boolean, "Batches differ in length", nullptr, {{"true", Launcher}}},
    {parallelism, "parallelism_config_sp_attn_implementation", {1, 12}, never, Choice, "Attention under sequence parallelism; also a kernel of the Hub", &spAttentions, {{"sdpa", Launcher}}},

    {fp8, "fp8_backend", {0, 34}, never, Choice, "Who computes in 8 bits; unset: the first that is installed", &fp8Backends, {}, {.nullable = true}},
    {fp8, "fp8_use_autocast_during_eval", {0, 34}, never, Boolean, "8 bits in evaluation too; TE", nullptr, {{"false", Launcher}}},
    {fp8, "fp8_margin", {0, 34}, never, Integer, "Margin of the scaling factor; TE", nullptr, {{"0", Launcher}}},
    {fp8, "fp8_interval", {0, 34}, never, Integer, "Steps between scaling factors; TE", nullptr, {{"1", Launcher}}, {.minimum = 1}},
    {fp8, "fp8_format", {0, 34}, never, Choice, "Which 8 bits; TE", &fp8Formats, {{"E4M3", Launcher, {0, 34}, {1, 8}}, {"HYBRID", Launcher, {1, 8}}}},
    {fp8, "fp8_amax_history_len", {0, 34}, never, Integer, "Steps of history behind a scaling factor; TE", nullptr, {{"1024", Launcher}}, {.minimum = 1}},
    {fp8, "fp8_amax_compute_algo", {0, 34}, never, Choice, "How history makes a scaling factor; TE", &amaxes, {{"most_recent", Launcher}}},
    {fp8, "fp8_override_linear_precision", {0, 34}, never, BoolTriple, "fprop, dgrad and wgrad in higher precision; TE", nullptr, {{"[false, false, false]", Launcher}}},
    {fp8, "fp8_use_mxfp8_block_scaling", {1, 9}, never, Boolean, "A scaling factor for each block; TE", nullptr, {{"false", Plugin}}, {.nullable = true}},
    {fp8, "fp8_opt_level", {0, 34}, never, Choice, "What is in 8 bits; MS-AMP", &optLevels, {{"O2", Launcher}}},
    {fp8, "fp8_enable_fsdp_float8_all_gather", {1, 13}, never, Boolean, "FSDP 2 gathers in 8 bits; torchao", nullptr, {{"true", Launcher}}},
    {fp8, "fp8_pad_inner_dim", {1, 13}, never, Boolean, "Pad products to multiples of 16; torchao", nullptr, {{"true", Launcher}}},
    {fp8, "fp8_amax_history_length", {0, 34}, never, Integer, "What the questionnaire writes for amax_history_len; nobody reads it", nullptr, {}, {.nullable = true, .unreadSince = {0, 34}, .instead = "fp8_amax_history_len"}},
    {fp8, "fp8_amax_compute_algorithm", {0, 34}, never, Choice, "What the questionnaire writes for amax_compute_algo; nobody reads it", &amaxes, {}, {.nullable = true, .unreadSince = {0, 34}, .instead = "fp8_amax_compute_algo"}},
    {fp8, "fp8_optimization_level", {0, 34}, never, Choice, "What the questionnaire writes for opt_level; nobody reads it", &optLevels, {}, {.nullable = true, .unreadSince = {0, 34}, .instead = "fp8_opt_level"}},

    {mpirun, "mpirun_hostfile", {0, 28}, never, String, "Machines for mpirun", nullptr, {}, {.nullable = true}},
    {mpirun, "mpirun_ccl", {0, 28}, {1, 13}, Integer, "oneCCL worker threads", nullptr, {{"1", Launcher}}, {.minimum = 0}},

    {dynamo, "dynamo_backend", {0, 17}, never, Choice, "Who compiles", &dynamos, {{"'no'", Launcher}}},
    {dynamo, "dynamo_mode", {0, 17}, never, Choice, "How hard it tries", &modes, {{"default", Launcher}}},
    {dynamo, "dynamo_use_fullgraph", {0, 17}, never, Boolean, "Refuse to break the graph", nullptr, {{"false", Launcher}}},
    {dynamo, "dynamo_use_dynamic", {0, 17}, never, Boolean, "Trace with dynamic shapes", nullptr, {{"false", Launcher}}},
    {dynamo, "dynamo_use_regional_compilation", {1, 7}, never, Boolean, "Compile repeated layers once", nullptr, {{"false", Launcher}}},

    {ipex, "ipex_enabled", {0, 19}, {0, 20}, Boolean, "Use Intel's extension", nullptr, {{"false", Launcher}}},
    {ipex, "ipex", {0, 20}, {1, 13}, Boolean, "Use Intel's extension on CPUs", nullptr, {{"false", Launcher}}},
    {ipex, "use_xpu", {0, 20}, {1, 6}, Boolean, "Use Intel GPUs", nullptr, {{"false", Launcher}}},

    {tp, "tp_size", {1, 4}, {1, 7}, Integer, "Tensor parallel ranks", nullptr, {{"1", Launcher}}, {.minimum = 1}},

    {sagemaker, "compute_environment", {0, 2}, never, Choice, "Where the job runs", &environments},
    {sagemaker, "distributed_type", {0, 2}, never, Choice, "How instances share the work; required", &sagemakerTypes},
    {sagemaker, "mixed_precision", {0, 6}, never, Choice, "The dtype of computation; quote 'no'", &precisions, {{"'no'", Loader}}, {.nullable = true}},
    {sagemaker, "use_cpu", {0, 6}, never, Boolean, "Run on the CPU", nullptr, {{"false", Loader}}, {.nullable = true}},
    {sagemaker, "debug", {0, 22}, never, Boolean, "Check the shapes of collectives (slow)", nullptr, {{"false", Loader}}, {.nullable = true}},
    {sagemaker, "fp16", {0, 2}, never, Boolean, "mixed_precision fp16, as files before 0.6 say it", nullptr, {{"false", Loader}}, {.nullable = true, .instead = "mixed_precision"}},
    {sagemaker, "dynamo_backend", {0, 15}, never, Choice, "dynamo_config's dynamo_backend, as files of 0.15 and 0.16 say it", &dynamos, {{"'NO'", Loader}}, {.instead = "dynamo_config"}},
    {sagemaker, "ec2_instance_type", {0, 2}, never, String, "Instance type; required"},
    {sagemaker, "iam_role_name", {0, 2}, never, String, "IAM role; required"},
    {sagemaker, "image_uri", {0, 2}, never, String, "Container image; required before 0.17", nullptr, {}, {.nullable = true}},
    {sagemaker, "profile", {0, 2}, never, String, "AWS profile", nullptr, {}, {.nullable = true}},
    {sagemaker, "region", {0, 2}, never, String, "AWS region", nullptr, {{"us-east-1", Loader}}},
    {sagemaker, "num_machines", {0, 2}, never, Integer, "Instances", nullptr, {{"1", Loader}}, {.minimum = 1}},
    {sagemaker, "gpu_ids", {0, 14}, never, String, "Devices of an instance", nullptr, {{"all", Loader}}},
    {sagemaker, "base_job_name", {0, 2}, never, String, "Start of the job's name", nullptr, {{"accelerate-sagemaker-1", Loader}}},
    {sagemaker, "pytorch_version", {0, 2}, never, String, "PyTorch in the container; quote it", nullptr, {{"1.10.2", Loader}}},
    {sagemaker, "transformers_version", {0, 2}, never, String, "transformers in the container; quote it", nullptr, {{"4.17.0", Loader}}},
    {sagemaker, "py_version", {0, 2}, never, String, "Python in the container", nullptr, {{"py38", Loader}}},
    {sagemaker, "sagemaker_inputs_file", {0, 2}, never, String, "File with input channels", nullptr, {}, {.nullable = true}},
    {sagemaker, "sagemaker_metrics_file", {0, 2}, never, String, "File with metrics", nullptr, {}, {.nullable = true}},
    {sagemaker, "additional_args", {0, 17}, never, Mapping, "More arguments of the estimator", nullptr, {}, {.nullable = true}},
    {sagemaker, "dynamo_config", {0, 17}, never, Mapping, "torch.compile", nullptr, {}, {.nullable = true}},
    {sagemaker, "enable_cpu_affinity", {0, 30}, never, Boolean, "Bind each process to the CPUs near its GPU", nullptr, {{"false", Loader}}, {.nullable = true}},
};
// clang-format on

} // namespace

std::span<const KeyInfo> accel::keyData() { return keys; }
std::span<const SectionInfo> accel::sectionData() { return sections; }
