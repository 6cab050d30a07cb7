# The joint search and its oracle: no MLIR.
if(TARGET AccelTune)
  accel_unit_test(tune-test ${CMAKE_CURRENT_LIST_DIR}/TuneTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/TuneSpaceTest.cpp ${CMAKE_CURRENT_LIST_DIR}/MeshSearchTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/TuneFixture.cpp LINK AccelTune)
endif()
