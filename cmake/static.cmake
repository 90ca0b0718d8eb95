# remote-static: the program for other distributions. It is linked from the same objects as `remote`, with Debian's
# static archives, and needs nothing at run time but glibc. src/static replaces libraries for which Debian has no
# archive. The archives are named by file, because the targets that `remote` links refer to shared libraries.
set(REMOTE_STATIC_ARCHIVES "")
foreach(name ssh crypto z lzma unistring yaml-cpp cmark-gfm-extensions cmark-gfm)
  find_library(REMOTE_STATIC_${name} lib${name}.a REQUIRED)
  list(APPEND REMOTE_STATIC_ARCHIVES ${REMOTE_STATIC_${name}})
endforeach()
add_executable(remote-static src/main.cpp src/static/fmt.cpp src/static/gssapi.cpp src/static/random.cpp src/static/spdlog.cpp
               src/static/unwind.cpp)
target_compile_definitions(remote-static PRIVATE SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
target_include_directories(remote-static PRIVATE src include)
target_compile_features(remote-static PRIVATE cxx_std_20)
target_link_options(remote-static PRIVATE -static-libstdc++ -static-libgcc)
add_dependencies(remote-static remote_core remote_library)
set_target_properties(remote-static PROPERTIES LINK_DEPENDS "$<TARGET_FILE:remote_core>;$<TARGET_FILE:remote_library>")
target_link_libraries(remote-static PRIVATE $<TARGET_FILE:remote_core> $<TARGET_FILE:remote_library> ${REMOTE_STATIC_ARCHIVES}
                      Threads::Threads ${CMAKE_DL_LIBS})
