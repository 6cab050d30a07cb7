set(_here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET AccelReplay)
  accel_unit_test(replay-test ${_here}/ReplayTest.cpp LINK AccelReplay)
  # The library's checks see an entry that is read where there is none.
  accel_unit_test(idle-blocks-test ${_here}/IdleBlocksTest.cpp)
  target_compile_definitions(idle-blocks-test PRIVATE _GLIBCXX_ASSERTIONS)
  set_source_files_properties(${_here}/IdleBlocksTest.cpp PROPERTIES
    SKIP_PRECOMPILE_HEADERS ON)
endif()
if(TARGET AccelSegments)
  accel_unit_test(segments-test ${_here}/SegmentsTest.cpp
    LINK AccelSegments AccelPlanFixture)
endif()
# c10's own allocator, which only the wheel with CUDA has.
if(TARGET AccelReplay AND TARGET accel::torch_cuda AND
   EXISTS ${_torch}/include/c10/cuda/PeerToPeerAccess.h)
  accel_unit_test(torch-allocator-test ${_here}/TorchAllocatorTest.cpp
    ${_here}/FakeCuda.cpp TORCH LINK AccelReplay accel::torch_cuda)
  target_link_options(torch-allocator-test PRIVATE -Wl,--export-dynamic)
endif()
