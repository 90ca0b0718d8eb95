#pragma once

#include <vector>

#include <remote/trust.hpp>

#include "ui/terminal.hpp"

namespace remote::cli {

// Prints a project's demands on stderr, value by value.
void show_demands(ui::Terminal& terminal, const std::vector<Demand>& demands);

}  // namespace remote::cli
