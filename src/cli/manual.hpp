#pragma once

#include <string>

namespace CLI {
class App;
}

namespace remote::cli {

// The manual page of a command (of `remote` itself for the root), in the macros of man(7). `name` is how it
// is called: "remote run". `date` as in 2026-11-22.
std::string manual_page(const CLI::App& command, const std::string& name, const std::string& date);

// remote-configs.yaml(5).
std::string configs_page(const std::string& date);

// The hidden command `remote __manual FOLDER`, by which the build writes all pages, into FOLDER/man1 and
// FOLDER/man5. Their date is that of SOURCE_DATE_EPOCH (reproducible-builds.org), else today.
void add_manual(CLI::App& app);

}  // namespace remote::cli
