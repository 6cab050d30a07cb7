// RUN: accel-opt opt %s --verify-diagnostics --pass-pipeline='builtin.module(checkpoint{mode=half})'

// expected-error @+1 {{unknown checkpoint mode 'half', expected none, pointwise or full}}
module {
}
