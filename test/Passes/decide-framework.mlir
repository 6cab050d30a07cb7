// RUN: sed 's/FRAMEWORK/ddp/' %s | accel-opt opt --decide-framework --accumulate --optimizer-in-backward --prefetch | FileCheck %s --check-prefix=DDP
// RUN: sed 's/FRAMEWORK/deepspeed/' %s | accel-opt opt --decide-framework --accumulate --optimizer-in-backward --prefetch | FileCheck %s --check-prefix=ZERO
// RUN: sed 's/FRAMEWORK/fsdp2/' %s | accel-opt opt --decide-framework --accumulate --optimizer-in-backward --prefetch | FileCheck %s --check-prefix=FSDP2
// RUN: sed 's/FRAMEWORK/fsdp2/; s/accelerate "1.15.0"/accelerate "1.10.0"/' %s | accel-opt opt --accumulate | FileCheck %s --check-prefix=EACH
// RUN: sed 's/FRAMEWORK/torchtitan/' %s | accel-opt opt --decide-framework --accumulate --optimizer-in-backward --prefetch | FileCheck %s --check-prefix=TITAN
// RUN: sed 's,FRAMEWORK,torchtitan/horovod,' %s | not accel-opt opt --decide-framework 2>&1 | FileCheck %s --check-prefix=OVER
// RUN: sed 's/FRAMEWORK/accel-run/' %s | accel-opt opt --decide-framework --accumulate --optimizer-in-backward --prefetch | FileCheck %s --check-prefix=OWN
// RUN: sed 's/FRAMEWORK/megatron/' %s | accel-opt opt --decide-framework | FileCheck %s --check-prefix=MEGATRON
// RUN: sed 's/FRAMEWORK/horovod/' %s | not accel-opt opt --decide-framework 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Each framework decides for itself what no line of the YAML says.

// DDP: accumulation = #sharding.accumulation<4, keep_unsharded, because = <"default: Accelerate's accumulate() enters no_sync() but for the last micro-batch">>
// DDP-SAME: ddp = #sharding.ddp<bucket = 52428800, first = 52428800, as_view = false, hook = "bf16", because = <"--ddp-kwargs">>
// DDP-SAME: offload = #sharding.offload<parameters = false, optimizer = false, activations = false, because = <"default: nothing waits in host memory">>
// DDP-SAME: optimizer_step = #sharding.optimizer_step<foreach, clip = true, because = <"default: torch's default on accelerators">>
// DDP-NOT: prefetch = #sharding
// DDP-SAME: update = #sharding.update<at_end, because = <"optimizer.step() runs after the backward">>
// DDP-NOT: zero =

// ZERO-NOT: ddp =
// ZERO: zero = #sharding.zero<stage = 3, reduce_bucket = 500000000, prefetch_bucket = 1000, persistence_threshold = 100000, overlap = true, because = <"zero_stage">>

// FSDP2: accumulation = #sharding.accumulation<4, keep_unsharded,
// FSDP2-SAME: prefetch = #sharding.prefetch<forward = 1, backward = 1, because = <"default: FSDP2 gathers the next unit while this one computes">>

// EACH: accumulation = #sharding.accumulation<4, reduce_each, because = <"default: accelerate before 1.11 reduces every micro-batch under FSDP2">>

// TITAN: accumulation = #sharding.accumulation<4, reduce_each, because = <"default: its training loop reduces every micro-batch">>
// TITAN-SAME: optimizer_step = #sharding.optimizer_step<fused, clip = true, because = <"default: torchtitan's optimizer.implementation is fused">>
// TITAN-SAME: prefetch = #sharding.prefetch<forward = 1, backward = 1,

// OVER: error: unknown framework 'torchtitan/horovod'

// OWN: accumulation = #sharding.accumulation<4, reduce_each,
// OWN-NOT: offload =
// OWN-NOT: optimizer_step =

// MEGATRON: megatron = #sharding.megatron<distributed = true, overlap_gradients = false, overlap_parameters = false, chunks = 2 experts 8 overlap_tensor true sends_once true, because = <"megatron_lm_config">>

// UNKNOWN: error: unknown framework 'horovod', expected accel-run, fsdp2, fsdp1, ddp, deepspeed, megatron or single, or a trainer such as torchtitan
sharding.job "m" micro_batch 1 sequence_length 8 device "cuda" {framework = #sharding.framework<"FRAMEWORK" torch "2.15" accelerate "1.15.0">}
sharding.request "accumulation" {steps = 4} because <"gradient_accumulation_steps">
sharding.request "optimizer" {clip} because <"max_grad_norm">
sharding.request "ddp" {bucket = 52428800, hook = "bf16"} because <"--ddp-kwargs">
sharding.request "megatron" {chunks = 2, distributed, experts = 8, overlap_tensor, sends_once} because <"megatron_lm_config">
sharding.request "zero" {stage = 3, prefetch_bucket = 1000, overlap} because <"zero_stage">
