"""What the paper says about its density ratio and Diverse Density, checked: claims in numbers, maximisers measured."""
