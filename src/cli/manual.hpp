#pragma once

#include <string>

namespace CLI {
class App;
}

namespace remote::cli {

// The manual page of a command (for the root: of `remote` itself), in the macros of man(7). `name`: as typed,
// "remote run". `date`: such as 2026-11-22.
std::string manual_page(const CLI::App& command, const std::string& name, const std::string& date);

// remote-configs.yaml(5).
std::string configs_page(const std::string& date);

// The hidden command `remote __manual FOLDER`, which the build uses to write all pages to FOLDER/man1 and
// FOLDER/man5. Their date is SOURCE_DATE_EPOCH (reproducible-builds.org), or else today.
void add_manual(CLI::App& app);

}  // namespace remote::cli
