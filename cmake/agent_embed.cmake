# Run by the build (agent.cmake): writes OUT, the C++ source with the compressed agents PACKED for ARCHITECTURES, and
# the digests of PROGRAMS. The bytes are included by the assembler, because a compiler would need minutes and gigabytes
# for such an array.
set(body "// Made by cmake/agent_embed.cmake; do not edit.\n#include \"server/agents.hpp\"\n\n")
string(APPEND body "#ifdef __APPLE__\n#define SECTION \".pushsection __TEXT,__const\\n\"\n#define PREFIX \"_\"\n#else\n"
                   "#define SECTION \".pushsection .rodata\\n\"\n#define PREFIX \"\"\n#endif\n")
set(list "")
foreach(architecture program xz IN ZIP_LISTS ARCHITECTURES PROGRAMS PACKED)
  set(name remote_agent_${architecture})
  file(SHA256 ${program} digest)
  file(SIZE ${program} size)
  file(SIZE ${xz} packed)
  string(REPLACE "\\" "\\\\" path "${xz}")
  string(REPLACE "\"" "\\\"" path "${path}")
  string(APPEND body "\nasm(SECTION PREFIX \"${name}:\\n.incbin \\\"${path}\\\"\\n.popsection\\n\");\n"
                     "extern \"C\" __attribute__((visibility(\"hidden\"))) const char ${name}[];\n")
  string(APPEND list "      Agent{\"${architecture}\", \"${digest}\", {${name}, ${packed}}, ${size}},\n")
endforeach()
string(APPEND body "\nnamespace remote::server {\n\nstd::span<const Agent> agents() {\n  static const Agent list[] = {\n${list}  };\n"
                   "  return list;\n}\n\n}  // namespace remote::server\n")
file(WRITE "${OUT}" "${body}")
