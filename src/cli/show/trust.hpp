#pragma once

#include <vector>

#include <remote/trust.hpp>

#include "ui/terminal.hpp"

namespace remote::cli {

// Prints on stderr what a project wants to do on this machine, value by value.
void show_demands(ui::Terminal& terminal, const std::vector<Demand>& demands);

}  // namespace remote::cli
