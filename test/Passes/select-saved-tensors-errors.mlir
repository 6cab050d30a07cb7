// RUN: accel-opt opt %s --verify-diagnostics --pass-pipeline='builtin.module(select-saved-tensors{mode=half})'

// expected-error @+1 {{unknown checkpoint mode 'half', expected none, pointwise or full}}
module {
}
