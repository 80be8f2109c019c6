# odecast_room(NAME SOURCES a b … LINKS targets… [PRIVATE targets…] [KERNELS k …])
#
# One static library per room. Its headers are reached through a directory of its own that holds
# nothing but a link to odecast/NAME, so that including a header of a room that is not linked does
# not compile. A kernel k is odecast/NAME/detail/k_kernel.hpp, compiled once per instruction set
# (core/detail/kernel.hpp).

# Names of core/isa.hpp, with what the compiler is told for each.
set(ODECAST_ISAS sse2 avx2 avx512)
set(ODECAST_FLAGS_avx2 -march=x86-64-v3)
set(ODECAST_FLAGS_avx512 -march=x86-64-v4 -mprefer-vector-width=512)

set(ODECAST_TARGETS "")

# -Wrestrict is wrong about std::string in GCC 12 (its bug 105329).
set(ODECAST_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# Multiply-adds fused at the compiler's choice would make instruction sets and compilers differ in
# the last bit (fused() of core/pack.hpp is the same everywhere); errno is never looked at.
set(ODECAST_NUMERICS -ffp-contract=off -fno-math-errno)

# Without the time at which a precompiled header was made, a compiler cache knows it in every clone.
set(ODECAST_PRECOMPILED "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")

# Overruns that reach a return address, or a buffer whose size is known, end the program. Sanitizers
# see more and are in the way of these; without optimisation the second does nothing but warn.
if(ODECAST_SANITIZE OR ODECAST_FUZZ)
  set(ODECAST_HARDENING "")
else()
  set(level 2)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    set(level 3)
  endif()
  set(ODECAST_HARDENING -fstack-protector-strong
      "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>")
endif()

# For what is linked here: addresses are resolved at the start, and the table of them is read-only
# from then on. Who links the installed library chooses for himself.
function(odecast_link_options target)
  target_link_options(${target} PRIVATE LINKER:-z,relro,-z,now)
endfunction()

function(odecast_compile_options target)
  target_compile_options(${target} PRIVATE
                         ${ODECAST_WARNINGS} ${ODECAST_NUMERICS} ${ODECAST_HARDENING}
                         ${ODECAST_PRECOMPILED}
                         $<$<BOOL:${ODECAST_WERROR}>:-Werror>)
  if(ODECAST_SANITIZE)
    # Checks of every pointer double the time to compile Eigen, and find nothing that the address
    # sanitizer, or the fault itself, does not; its blocks of empty matrices are offsets of null.
    # Instrumented code makes GCC see uninitialised values inside the standard library.
    target_compile_options(${target} PRIVATE -fsanitize=${ODECAST_SANITIZE}
                           -fno-sanitize=null,alignment,object-size,vptr,pointer-overflow
                           -fno-sanitize-recover=all -fno-omit-frame-pointer
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${target} PUBLIC -fsanitize=${ODECAST_SANITIZE})
  endif()
  if(ODECAST_FUZZ)  # coverage that the fuzzer steers by
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# In builds from nothing, what takes longest to read is read once, by the first room.
function(odecast_precompile target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  elseif(target STREQUAL "odecast_core")
    target_precompile_headers(${target} PRIVATE <Eigen/Dense> <algorithm> <array> <cmath>
                              <functional> <map> <optional> <string> <variant> <vector>)
  else()
    target_precompile_headers(${target} REUSE_FROM odecast_core)
  endif()
endfunction()

# Where CMAKE_UNITY_BUILD is on, replaces the sources named in `list` by one that includes them. It
# names them by their place below an include directory of the target: CMake's own names where the
# clone stands, and a compiler cache would not know it in another.
function(odecast_as_one_source target list)
  if(CMAKE_UNITY_BUILD)
    set(source ${PROJECT_BINARY_DIR}/unity/${target}.cpp)
    list(TRANSFORM ${list} REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE content)
    list(JOIN content "" content)
    file(CONFIGURE OUTPUT ${source} CONTENT "${content}")
    set(${list} ${source} PARENT_SCOPE)
  else()
    list(TRANSFORM ${list} PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE sources)
    set(${list} ${sources} PARENT_SCOPE)
  endif()
endfunction()

function(odecast_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE;KERNELS" ${ARGN})
  set(target odecast_${name})
  list(TRANSFORM ARG_SOURCES REPLACE "(.+)" "odecast/${name}/\\1.cpp")
  odecast_as_one_source(${target} ARG_SOURCES)
  foreach(kernel IN LISTS ARG_KERNELS)
    foreach(isa IN LISTS ODECAST_ISAS)
      set(source ${PROJECT_BINARY_DIR}/kernels/${name}/${kernel}_${isa}.cpp)
      file(CONFIGURE OUTPUT ${source}
           CONTENT "#include \"odecast/${name}/detail/${kernel}_kernel.hpp\"\n")
      list(APPEND ARG_SOURCES ${source})
      set(flags -DODECAST_THIS_ISA=${isa} ${ODECAST_FLAGS_${isa}})
      if(NOT ODECAST_SANITIZE)
        list(APPEND flags -O3)
      endif()
      # One instruction set is watched by the sanitizers, the one that their presets choose: all
      # have one source. That of the tape's rows takes minutes to compile with checks; its
      # operations are watched where they are a number's. Checks for undefined behaviour take
      # minutes for unrolled packs.
      if(ODECAST_SANITIZE AND (NOT isa STREQUAL "sse2" OR kernel STREQUAL "rows"))
        list(APPEND flags -fno-sanitize=all)
      elseif(ODECAST_SANITIZE MATCHES "undefined")
        list(APPEND flags -fno-sanitize=undefined)
        if(ODECAST_FUZZ)  # no reader is among them
          list(APPEND flags -fno-sanitize=fuzzer-no-link)
        endif()
      endif()
      # GCC takes its own intrinsics and vectors filled lane by lane for uninitialised.
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        list(APPEND flags -Wno-uninitialized -Wno-maybe-uninitialized)
      endif()
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${flags}"
                                  SKIP_PRECOMPILE_HEADERS ON)
    endforeach()
  endforeach()

  set(root ${PROJECT_BINARY_DIR}/rooms/${name})
  file(MAKE_DIRECTORY ${root}/odecast)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/odecast/${name} ${root}/odecast/${name} SYMBOLIC)

  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(odecast::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} UNITY_BUILD OFF)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${root}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${ARG_LINKS} PRIVATE ${ARG_PRIVATE})
  odecast_compile_options(${target})
  odecast_precompile(${target})
  list(APPEND ODECAST_TARGETS ${target})
  set(ODECAST_TARGETS ${ODECAST_TARGETS} PARENT_SCOPE)
endfunction()
