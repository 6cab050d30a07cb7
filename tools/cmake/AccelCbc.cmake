include_guard(GLOBAL)
# accel::cbc: COIN-OR's branch and cut from Debian's archives. Everything is
# linked statically, LAPACK and Fortran's runtime too: as shared libraries they
# would add 1 ms to every start of accel-opt, whether it solves or not.
find_path(CBC_INCLUDE coin/CbcModel.hpp REQUIRED)
add_library(accel::cbc INTERFACE IMPORTED GLOBAL)
target_include_directories(accel::cbc SYSTEM INTERFACE ${CBC_INCLUDE}
                                                       ${CBC_INCLUDE}/coin)
foreach(_name Cbc Cgl OsiClp Osi Clp CoinUtils lapack blas)
  find_library(CBC_${_name} NAMES lib${_name}.a ${_name} REQUIRED)
  target_link_libraries(accel::cbc INTERFACE ${CBC_${_name}})
endforeach()
# gcc knows where its Fortran runtime is.
foreach(_name gfortran quadmath)
  execute_process(COMMAND gcc -print-file-name=lib${_name}.a
                  OUTPUT_VARIABLE _path OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(IS_ABSOLUTE "${_path}" AND EXISTS "${_path}")
    target_link_libraries(accel::cbc INTERFACE ${_path})
  else()
    target_link_libraries(accel::cbc INTERFACE ${_name})
  endif()
endforeach()
foreach(_name bz2 z)
  find_library(CBC_${_name} NAMES lib${_name}.a ${_name} REQUIRED)
  target_link_libraries(accel::cbc INTERFACE ${CBC_${_name}})
endforeach()
find_path(LEMON_INCLUDE lemon/preflow.h REQUIRED)
add_library(accel::lemon INTERFACE IMPORTED GLOBAL)
target_include_directories(accel::lemon SYSTEM INTERFACE ${LEMON_INCLUDE})
