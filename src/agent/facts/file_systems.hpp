#pragma once

#include <string>

namespace remote::agent {

// The name of a statfs(2) type, as "stat -f -c %T" prints it: "ext2/ext3", "tmpfs", "UNKNOWN (0x1)".
std::string name_file_system(unsigned long type);

}  // namespace remote::agent
