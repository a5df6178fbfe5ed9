"""What each op means, said without Tandem. REFERENCE maps op names to functions of (operands…, attributes by name)."""
