// RUN: accel-opt opt %s --verify-diagnostics --select-kernels
// RUN: not accel-opt opt %s --pass-pipeline='builtin.module(select-kernels{device=tpu})' 2>&1 | FileCheck %s

// CHECK: error: select-kernels needs a device, cpu or cuda, not 'tpu'
// expected-error @+1 {{select-kernels needs a device, cpu or cuda}}
module {
}
