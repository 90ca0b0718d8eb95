# Builds the agent, the native program that runs on servers, and embeds it. remote_agents(OUT SOURCE...) writes OUT, the
# C++ file that defines remote::server::agents() (src/server/agents.hpp), and makes the target remote-agent, which
# builds agent/remote-agent-ARCHITECTURE.
#
# The agent has its own compiler flags, so that it is the same in every kind of build: a program with sanitizers would
# not run elsewhere. REMOTE_AGENT_ARCHITECTURES lists the architectures, as printed by `uname -m`. Architectures other
# than the builder's need the cross compiler ARCHITECTURE-linux-gnu-g++ (Debian's g++-aarch64-linux-gnu). A Mac cannot
# build a Linux program: there, set REMOTE_AGENT_DIR to a folder with remote-agent-x86_64 and remote-agent-aarch64, from
# the agent folder of a Linux build of the same sources.
set(REMOTE_AGENT_DIR "" CACHE PATH "Folder with prebuilt agents, remote-agent-ARCHITECTURE, of the same sources")
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(default ${CMAKE_SYSTEM_PROCESSOR})
else()
  set(default x86_64 aarch64)
endif()
set(REMOTE_AGENT_ARCHITECTURES "${default}" CACHE STRING "Architectures of servers, as uname -m prints them: x86_64;aarch64")
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT REMOTE_AGENT_DIR)
  message(FATAL_ERROR "The agent, a Linux program, cannot be built on ${CMAKE_SYSTEM_NAME}: build the target remote-agent of these sources on "
                      "Linux with -DREMOTE_AGENT_ARCHITECTURES=\"x86_64;aarch64\", copy its folder agent here, and set "
                      "-DREMOTE_AGENT_DIR=THAT_FOLDER")
endif()

# remote_agent_units(OUT FOLDER SOURCE...): sets OUT to the files to compile, with their paths. In unity builds
# (CMAKE_UNITY_BUILD) the modules are compiled in batches, which takes half the time; for each batch, a file in FOLDER
# includes its modules.
function(remote_agent_units out folder)
  set(units ${ARGN})
  if(CMAKE_UNITY_BUILD)
    set(modules ${ARGN})
    list(FILTER modules EXCLUDE REGEX "^src/agent/[^/]*$")
    list(FILTER units INCLUDE REGEX "^src/agent/[^/]*$")
    set(count 0)
    foreach(module IN LISTS modules)
      math(EXPR batch "${count} / 8")
      string(APPEND text_${batch} "#include \"${module}\"\n")
      math(EXPR count "${count} + 1")
    endforeach()
    foreach(number RANGE ${batch})
      file(CONFIGURE OUTPUT ${folder}/batch_${number}.cpp CONTENT "${text_${number}}" @ONLY)
      list(APPEND units ${folder}/batch_${number}.cpp)
    endforeach()
  endif()
  list(TRANSFORM units PREPEND ${PROJECT_SOURCE_DIR}/ REGEX "^src/")
  set(${out} ${units} PARENT_SCOPE)
endfunction()

# remote_build_agent(ARCHITECTURE OUT SOURCE...)
function(remote_build_agent architecture out)
  if(architecture STREQUAL CMAKE_SYSTEM_PROCESSOR)
    set(compiler ${CMAKE_CXX_COMPILER})
  else()
    find_program(REMOTE_AGENT_COMPILER_${architecture} ${architecture}-linux-gnu-g++)
    set(compiler ${REMOTE_AGENT_COMPILER_${architecture}})
    if(NOT compiler)
      message(FATAL_ERROR "There is no ${architecture}-linux-gnu-g++, which compiles the agent for ${architecture}: install it (Debian: "
                          "scripts/install-deps package), set REMOTE_AGENT_DIR, or leave ${architecture} out of REMOTE_AGENT_ARCHITECTURES")
    endif()
  endif()
  set(flags -std=c++20 -Os -DNDEBUG -ffunction-sections -fdata-sections -fno-pie -Wall -Wextra -pthread
            -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong
            -ffile-prefix-map=${PROJECT_BINARY_DIR}=build -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.
            -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND flags -Wno-maybe-uninitialized)  # GCC 12 warns about optional values that are checked before use
  endif()
  if(REMOTE_WERROR)
    list(APPEND flags -Werror)
  endif()
  # Link-time optimization in a single partition saves 5% of the size.
  set(lto "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT architecture STREQUAL CMAKE_SYSTEM_PROCESSOR)
    set(lto -Os -flto=auto -flto-partition=one)
  endif()
  # Saves another 4%, if the linker understands the script.
  set(script ${PROJECT_SOURCE_DIR}/cmake/agent.ld)
  set(trial ${CMAKE_BINARY_DIR}/agent/trial-${architecture})
  file(WRITE ${trial}.cpp "int main() {}\n")
  execute_process(COMMAND ${compiler} -static -Wl,-T,${script} ${trial}.cpp -o ${trial} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  set(discard "")
  if(NOT failed)
    set(discard -Wl,-T,${script})
  endif()
  file(WRITE ${trial}-sodium.cpp "#include <sodium.h>\nint main() { return static_cast<int>(crypto_secretstream_xchacha20poly1305_keybytes()); }\n")
  execute_process(COMMAND ${compiler} -static -no-pie ${trial}-sodium.cpp -lsodium -o ${trial}-sodium RESULT_VARIABLE failed
                  OUTPUT_QUIET ERROR_VARIABLE reason)
  if(failed)
    if(architecture STREQUAL CMAKE_SYSTEM_PROCESSOR)
      set(hint "install libsodium.a and its headers (Debian: scripts/install-deps build installs libsodium-dev)")
    else()
      set(hint "install that architecture's libsodium.a (Debian: scripts/install-deps package adds the architecture and installs its libsodium-dev), "
               "set REMOTE_AGENT_DIR, or leave ${architecture} out of REMOTE_AGENT_ARCHITECTURES")
      list(JOIN hint "" hint)
    endif()
    message(FATAL_ERROR "The agent for ${architecture} cannot be linked with libsodium statically: ${hint}\n${reason}")
  endif()
  set(folder ${CMAKE_BINARY_DIR}/agent/${architecture})
  remote_agent_units(units ${folder} ${ARGN})
  set(objects "")
  foreach(unit IN LISTS units)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${unit})
    if(CMAKE_UNITY_BUILD)
      get_filename_component(name ${unit} NAME)
    endif()
    set(object ${folder}/${name}.o)
    get_filename_component(parent ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    add_custom_command(OUTPUT ${object}
                       COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${compiler} ${flags} ${lto} -frandom-seed=${name} -MD -MF ${object}.d -MT ${object}
                               -c ${unit} -o ${object}
                       DEPENDS ${unit} DEPFILE ${object}.d
                       COMMENT "Compiling the agent for ${architecture}: ${name}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_command(OUTPUT ${out}
                     COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/agent_link ${out} ${compiler} ${lto} -static -no-pie -pthread -Wl,--gc-sections -Wl,--build-id=none
                             -Wl,-s -Wl,-z,relro,-z,now,-z,noexecstack ${discard} ${objects} -lsodium
                     DEPENDS ${objects} ${script} ${PROJECT_SOURCE_DIR}/cmake/agent_link
                     COMMENT "Linking the agent for ${architecture}" VERBATIM)
endfunction()

function(remote_agents out)
  find_program(REMOTE_XZ xz REQUIRED)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/agent)
  set(programs "")
  set(packed "")
  foreach(architecture IN LISTS REMOTE_AGENT_ARCHITECTURES)
    set(name remote-agent-${architecture})
    set(program ${CMAKE_BINARY_DIR}/agent/${name})
    if(REMOTE_AGENT_DIR)
      if(NOT EXISTS ${REMOTE_AGENT_DIR}/${name})
        message(FATAL_ERROR "REMOTE_AGENT_DIR (${REMOTE_AGENT_DIR}) has no ${name}: REMOTE_AGENT_ARCHITECTURES is ${REMOTE_AGENT_ARCHITECTURES}")
      endif()
      set(program ${REMOTE_AGENT_DIR}/${name})
    else()
      remote_build_agent(${architecture} ${program} ${ARGN})
    endif()
    set(xz ${CMAKE_BINARY_DIR}/agent/${name}.xz)
    # A dictionary larger than the program would only need more memory on the server. xz has a filter for aarch64 code
    # only since 5.4, but every xz can take advantage of four-byte instructions (lp), which saves 1%.
    set(filters --lzma2=preset=9e,dict=4MiB,lc=2,lp=2)
    if(architecture STREQUAL "x86_64")
      set(filters --x86 --lzma2=preset=9e,dict=4MiB)
    endif()
    add_custom_command(OUTPUT ${xz} COMMAND sh -c "in=$1 out=$2; shift 2; \"$@\" <\"$in\" >\"$out\"" sh ${program} ${xz}
                               ${REMOTE_XZ} -zc -T1 --check=crc32 ${filters} DEPENDS ${program} VERBATIM)
    list(APPEND programs ${program})
    list(APPEND packed ${xz})
  endforeach()
  # The digest is in the source, so the source changes with the program.
  set(embed ${PROJECT_SOURCE_DIR}/cmake/agent_embed.cmake)
  add_custom_command(OUTPUT ${out}
                     COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DARCHITECTURES=${REMOTE_AGENT_ARCHITECTURES}" "-DPROGRAMS=${programs}" "-DPACKED=${packed}" -P ${embed}
                     DEPENDS ${programs} ${packed} ${embed} VERBATIM)
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${packed}")
  add_custom_target(remote-agent ALL DEPENDS ${out})
endfunction()
